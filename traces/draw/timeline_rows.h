#pragma once
// The rows of a rank on which its spans are drawn.

#include <cstdint>
#include <vector>

#include "traces/timeline.h"

namespace plumb { inline namespace traces {

/// The rows by (stream, number): spans of one stream that overlap lie on rows of their own.
struct RankRows {
  std::vector<std::int32_t> row;  ///< [span] index into `rows`
  struct Row {
    Stream stream = Stream::kCompute;
    int number = 0;  ///< 0 for the first of its stream
  };
  std::vector<Row> rows;  ///< by stream, then number
};

/// Puts each span, in list order, on the first row of its stream that is free at its start. A span without duration
/// takes a free row too: it would otherwise be drawn inside another.
RankRows rows_of(const RankTimeline& rank);

}}  // namespace plumb::traces
