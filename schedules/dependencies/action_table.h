#pragma once
// Tells the place in a schedule of the action with a given (operation, stage, micro-batch, part), from flat arrays that
// are filled once.

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/dependencies/dependencies.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

class ActionTable {
 public:
  static constexpr std::int32_t kNone = -1;

  /// Keeps the first action of each kind in list order. Doubled actions are ignored, as are actions whose stage,
  /// micro-batch or part lies outside the schedule. Only operations that have a micro-batch are kept.
  explicit ActionTable(const Schedule& schedule);

  /// Returns the action's id, or kNone. Stage -1 (no neighbour) and parts that the schedule does not have give kNone.
  std::int32_t find(Op op, int stage, int microbatch, int part = 0) const {
    const std::vector<std::int32_t>& slots = ids_[static_cast<std::size_t>(op)];
    const bool inside = stage >= 0 && stage < stages_ && microbatch >= 0 && microbatch < microbatches_ && part >= 0 &&
                        part < parts_ && !slots.empty();
    return inside ? slots[slot(stage, microbatch, part)] : kNone;
  }

  /// Returns the number of sequence slices: 1 + the largest part of any action that has a micro-batch.
  int parts() const { return parts_; }

 private:
  std::size_t slot(int stage, int microbatch, int part) const {
    return (static_cast<std::size_t>(stage) * static_cast<std::size_t>(microbatches_) +
            static_cast<std::size_t>(microbatch)) *
               static_cast<std::size_t>(parts_) +
           static_cast<std::size_t>(part);
  }

  int stages_ = 0;
  int microbatches_ = 0;
  int parts_ = 1;
  std::array<std::vector<std::int32_t>, kOpCount> ids_;  ///< [op][slot]; empty for operations that do not occur
};

}}  // namespace plumb::schedules
