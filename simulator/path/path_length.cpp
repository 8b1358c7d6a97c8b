#include "simulator/path/path_length.h"

#include <algorithm>
#include <span>

#include "schedules/phases.h"

namespace plumb { inline namespace simulator {
namespace {

/// Returns how long an action or an overlapped pair lasts, not rounded.
Seconds seconds_of(const CostTable& costs, std::span<const Action> actions) {
  const auto sum_of = [](const std::vector<LaneSegment>& lane) {
    Seconds sum{0};
    for (const LaneSegment& of : lane) sum += of.segment->seconds;
    return sum;
  };
  Seconds lasts{0};
  for (const CostPhase& phase : phases_of(costs, actions))
    lasts += std::max(sum_of(phase.blocking), sum_of(phase.beside));
  return lasts;
}

/// Returns the duration of a collective of copies, which lasts as long as the longest of them.
Seconds reduction_of(const Schedule& lowered, const CostTable& costs, Action action) {
  const int model_part = lowered.stages[action.stage].model_part;
  Seconds longest{0};
  for (std::int32_t stage = 0; stage < static_cast<std::int32_t>(lowered.stages.size()); ++stage) {
    if (lowered.stages[stage].model_part != model_part) continue;
    action.stage = stage;
    longest = std::max(longest, seconds_of(costs, {&action, 1}));
  }
  return longest;
}

Seconds message_of(const Schedule& lowered, const StageNeighbors& neighbors, const CostTable& costs,
                   const CriticalStep& step, bool frees_channel) {
  const bool forward = step.action.op == Op::kSendActivation;
  const int reader = (forward ? neighbors.successor : neighbors.predecessor)[step.action.stage];
  const LinkCost& link = link_between(costs, step.rank, lowered.stages[reader].rank);
  const StageCosts& stage = costs.stages[step.action.stage];
  const auto bytes = static_cast<double>(forward ? stage.activation_message_bytes : stage.gradient_message_bytes);
  return Seconds{bytes / link.bytes_per_second} + (frees_channel ? Seconds{0} : link.latency);
}

}  // namespace

Seconds path_length(const Schedule& lowered, const CostTable& costs, const std::vector<CriticalStep>& path) {
  const StageNeighbors neighbors = stage_neighbors(lowered);
  Seconds length{0};
  for (std::size_t i = 0; i < path.size(); ++i) {
    const CriticalStep& step = path[i];
    const Op op = step.action.op;
    if (is_recv(op) || receives_weights(op)) continue;  // the next step waits for its issue
    const bool frees_channel = i + 1 < path.size() && path[i + 1].reason == Reason::kChannel;
    if (is_send(op)) {
      length += message_of(lowered, neighbors, costs, step, frees_channel);
    } else if (sends_weights(op)) {
      const LinkCost& link = link_between(costs, step.rank, lowered.stages[step.action.peer].rank);
      length += seconds_of(costs, {&step.action, 1}) + (frees_channel ? Seconds{0} : link.latency);
    } else if (i + 1 < path.size() && path[i + 1].action.op == Op::kReduceGrad && path[i + 1].start < step.end) {
      const Action& inside = path[i + 1].action;  // it starts at a bucket that is complete before its host has ended
      length += costs.stages[inside.stage].bucket_offsets.at(static_cast<std::size_t>(inside.part));
    } else if (op == Op::kReduceGrad) {
      length += reduction_of(lowered, costs, step.action);
    } else {
      length += seconds_of(costs, actions_of(lowered, step));
    }
  }
  return length;
}

}}  // namespace plumb::simulator
