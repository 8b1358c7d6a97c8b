#include "traces/timeline.h"

namespace plumb { inline namespace traces {

Stream stream_of(Op op) {
  switch (op) {
    case Op::kSendActivation:
    case Op::kSendGradient:
    case Op::kSendWeights:
    case Op::kSendWeightGrad:
    case Op::kOffload:
    case Op::kEvict:
      return Stream::kSend;
    case Op::kRecvActivation:
    case Op::kRecvGradient:
    case Op::kRecvWeights:
    case Op::kRecvWeightGrad:
    case Op::kReload:
    case Op::kLoad:
      return Stream::kReceive;
    case Op::kUnshard:
    case Op::kReshard:
    case Op::kReduceGrad:
      return Stream::kCollective;
    default:
      return Stream::kCompute;
  }
}

std::string_view stream_name(Stream stream) {
  switch (stream) {
    case Stream::kCompute:
      return "compute";
    case Stream::kSend:
      return "send";
    case Stream::kReceive:
      return "receive";
    case Stream::kCollective:
      return "collective";
  }
  return "?";
}

Schedule schedule_of(const Timeline& timeline) {
  Schedule schedule{.microbatches = timeline.microbatches, .stages = timeline.stages};
  for (const RankTimeline& rank : timeline.ranks) {
    std::vector<Action>& actions = schedule.ranks.emplace_back();
    actions.reserve(rank.spans.size());
    for (const Span& span : rank.spans) actions.push_back(span.action);
  }
  return schedule;
}

std::string stage_name(const Timeline& timeline, int stage) {
  if (static_cast<std::size_t>(stage) < timeline.stage_names.size()) return timeline.stage_names[stage];
  return "stage " + std::to_string(stage);
}

}}  // namespace plumb::traces
