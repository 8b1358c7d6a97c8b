#include "executor/transport/value_bytes.h"

namespace plumb { inline namespace executor {

void put_timelines(std::string& bytes, const std::vector<RankTimeline>& timelines) {
  put_values(bytes, std::vector<std::uint64_t>{timelines.size()});
  for (const RankTimeline& timeline : timelines) {
    put_values(bytes, timeline.spans);
    put_values(bytes, timeline.memory);
    for (const std::vector<MemorySample>& samples : timeline.memory_by_kind) put_values(bytes, samples);
  }
}

std::vector<RankTimeline> get_timelines(ValueBytes& bytes) {
  std::vector<RankTimeline> timelines;
  const std::vector<std::uint64_t> count = bytes.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < (count.empty() ? 0 : count.front()); ++i) {
    RankTimeline& timeline = timelines.emplace_back();
    timeline.spans = bytes.get<Span>();
    timeline.memory = bytes.get<MemorySample>();
    for (std::vector<MemorySample>& samples : timeline.memory_by_kind) samples = bytes.get<MemorySample>();
  }
  return timelines;
}

}}  // namespace plumb::executor
