#pragma once
// Where spans are drawn: the rows of a rank.

#include <cstdint>
#include <vector>

#include "traces/timeline.h"

namespace plumb { inline namespace traces {

/// Rows by (stream, n): spans of one stream that overlap lie on rows of their own.
struct RankRows {
  std::vector<std::int32_t> row;  ///< [span] index into `rows`
  struct Row {
    Stream stream = Stream::kCompute;
    int number = 0;  ///< 0 for the first of its stream
  };
  std::vector<Row> rows;  ///< by stream, then number
};

/// Each span, in list order, goes to the first row of its stream that is free at its start, also one without duration:
/// it would be drawn inside another.
RankRows rows_of(const RankTimeline& rank);

}}  // namespace plumb::traces
