#include "traces/draw/timeline_rows.h"

#include <algorithm>
#include <array>

namespace plumb { inline namespace traces {
namespace {

constexpr std::size_t kStreams = 4;

}  // namespace

RankRows rows_of(const RankTimeline& rank) {
  RankRows result;
  std::array<std::vector<SimTime>, kStreams> busy_until;  // [stream][number]
  std::vector<int> number;
  number.reserve(rank.spans.size());
  for (const Span& span : rank.spans) {
    std::vector<SimTime>& rows = busy_until[static_cast<std::size_t>(span.stream)];
    const auto free = std::ranges::find_if(rows, [&](SimTime until) { return until <= span.start; });
    number.push_back(static_cast<int>(free - rows.begin()));
    if (free == rows.end()) {
      rows.push_back(span.end);
    } else {
      *free = std::max(*free, span.end);
    }
  }
  std::array<std::int32_t, kStreams> first_row{};
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    first_row[stream] = static_cast<std::int32_t>(result.rows.size());
    for (int n = 0; n < static_cast<int>(busy_until[stream].size()); ++n) {
      result.rows.push_back({.stream = static_cast<Stream>(stream), .number = n});
    }
  }
  for (std::size_t i = 0; i < number.size(); ++i) {
    result.row.push_back(first_row[static_cast<std::size_t>(rank.spans[i].stream)] + number[i]);
  }
  return result;
}

}}  // namespace plumb::traces
