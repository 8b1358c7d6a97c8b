#pragma once
// Candidates by the least that is known of their value (search/objective.h); of equals the first in the order of the tree, the simplest.
// Families and cores stand among them by their bounds, and are opened when their turn comes.
//
//   CandidateQueue waiting(candidates);
//   while (const auto index = waiting.take_first()) ...      // an open candidate; push() it again if it has to wait

#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "planner/search/candidates.h"

namespace plumb { inline namespace planner {

class CandidateQueue {
 public:
  /// Only layouts with those values count.
  explicit CandidateQueue(Candidates& candidates, LayoutRequest only = {});

  /// Puts a candidate into the queue, unless it is kOut.
  void push(std::size_t index);
  /// Returns the first candidate; nothing if none is left.
  std::optional<std::size_t> take_first();
  /// Returns a value below which no layout that waits can be; nothing if none waits.
  std::optional<double> least() const;

 private:
  enum class Level : std::uint8_t { kFamily, kCore, kCandidate };
  using Entry = std::tuple<double, TreePlace, Level, std::size_t>;

  void put(double value, const TreePlace& place, Level level, std::size_t index);

  Candidates& candidates_;
  LayoutRequest only_;
  std::vector<Entry> waiting_;  // a heap, the least in front
};

}}  // namespace plumb::planner
