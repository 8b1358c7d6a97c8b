#pragma once
// Statistics add a timeline up: the numbers of docs/design.md, from spans alone, whether predicted or measured.

#include <array>
#include <cstdint>
#include <vector>

#include "traces/timeline.h"

namespace plumb { inline namespace traces {

struct OpTotal {
  std::int64_t count = 0;
  /// Sum of durations, which may exceed SimTime's range. The two actions of an overlapped pair count their common time
  /// each.
  Seconds total{0};
};

struct RankStatistics {
  SimTime first_start{0};              ///< start of the first compute action
  SimTime last_end{0};                 ///< end of the last compute action
  SimTime busy{0};                     ///< time in which some compute action runs; overlapping actions count once
  SimTime idle{0};                     ///< makespan - busy
  std::int64_t peak_memory_bytes = 0;  ///< 0 without memory samples
};

struct Statistics {
  SimTime makespan{0};                  ///< from the first start to the last end of any span
  double bubble_ratio = 0;              ///< 1 - sum(busy) / (ranks * makespan)
  double span_bubble_ratio = 0;         ///< 1 - max(busy) / max(last_end - first_start)
  std::vector<RankStatistics> ranks;    ///< [pipeline rank]
  std::array<OpTotal, kOpCount> ops{};  ///< [op]
};

/// Returns the statistics of a timeline; all are zero without spans.
Statistics statistics_of(const Timeline& timeline);

/// Returns the end of the last span minus the start of the first, or 0 without spans.
SimTime makespan_of(const Timeline& timeline);

/// The two bubbles of ranks that are busy for `busy` from `first_start` to `last_end` in a step of `makespan`.
struct Bubbles {
  double bubble_ratio = 0;
  double span_bubble_ratio = 0;
};
Bubbles bubbles_of(const std::vector<RankStatistics>& ranks, SimTime makespan);

}}  // namespace plumb::traces
