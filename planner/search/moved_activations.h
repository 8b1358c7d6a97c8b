#pragma once
// The activations that a layout's order moves off its ranks, to the host (OFFLOAD, RELOAD) or to a partner (EVICT, LOAD),
// and the time that this takes at least.
//
//   MovedActivations moved(training);
//   moved.times(layout, stages, bound).fullest_channel

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "planner/search/bounds.h"
#include "planner/spec/layout.h"
#include "planner/spec/training_spec.h"
#include "planner/threads/memo.h"
#include "schedules/action.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// Activations of a stage that move alike.
struct MovedKind {
  bool returns = false;  ///< they come back one compute action ahead of their backward; false: they go
  std::int32_t stage = 0;
  Op back_beside = Op::kForward;  ///< of those that return: the operation of that compute action, and its stage
  std::int32_t beside_stage = 0;

  friend auto operator<=>(const MovedKind&, const MovedKind&) = default;  // NOLINT(modernize-use-nullptr): false alarm
};

/// How many of each kind move. Of two returns to backwards in a row only the first counts, so that what a rank
/// waits for one is no wait for another that counts.
using MovedCounts = std::map<MovedKind, std::int64_t>;

struct MoveTimes {
  SimTime fullest_channel{
      0};  ///< each operation has a channel of its own on every rank, which moves one after the other
  std::vector<SimTime> waits;  ///< [rank] for returns that last longer than the compute action beside them
};

class MovedActivations {
 public:
  /// `training` must outlive it.
  explicit MovedActivations(const TrainingSpec& training) : training_(training) {}

  /// Returns counts that the layout's step moves at least. Of an order that repeats they are counted on shorter ones; of a
  /// schedule that is made for costs nothing is counted. Threads may ask at the same time. Throws ScheduleError if the
  /// schedule has no order of so many micro-batches, or one whose activations move already.
  const MovedCounts& of(const Layout& layout) const;

  /// Returns the least times of a step of the layout, whose stages `stages` and `order` describe. Throws as of() does.
  MoveTimes times(const Layout& layout, const StageTable& stages, const BoundOrder& order) const;

 private:
  const TrainingSpec& training_;
  /// [schedule, pp, v, group, micro-batches, whether activations are offloaded]
  Memo<std::tuple<std::string, int, int, int, std::int64_t, bool>, MovedCounts> known_;
};

}}  // namespace plumb::planner
