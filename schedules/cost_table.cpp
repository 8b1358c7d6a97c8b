#include "schedules/cost_table.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace schedules {

std::string_view group_name(Group group) {
  constexpr std::array<std::string_view, kGroupCount> kNames = {"tensor", "context", "expert", "data", "pipeline"};
  return kNames[static_cast<std::size_t>(group)];
}

const std::vector<Segment>& segments_of(const CostTable& costs, const Action& action) {
  static const std::vector<Segment> kNone;
  const SegmentsByPart& by_part = costs.stages[action.stage].segments[static_cast<std::size_t>(action.op)];
  if (by_part.empty()) return kNone;
  return by_part.size() == 1 ? by_part.front() : by_part.at(static_cast<std::size_t>(action.part));
}

SimTime duration_of(const CostTable& costs, const Action& action) {
  const auto name = [&action] { return fmt::format("{} of stage {}", op_name(action.op), action.stage); };
  SimTime blocking{0};
  SimTime beside{0};
  for (const Segment& segment : segments_of(costs, action)) {
    SimTime& sum = segment.beside ? beside : blocking;
    sum += is_simulable(segment.seconds) ? to_sim_time(segment.seconds) : to_sim_time(segment.seconds, name());
    if (sum > kLongestCost) to_sim_time(to_seconds(sum), name());
  }
  return std::max(blocking, beside);
}

const LinkCost& link_between(const CostTable& costs, int source_rank, int destination_rank) {
  const auto it = costs.links.find({source_rank, destination_rank});
  return it == costs.links.end() ? costs.default_link : it->second;
}

CostTable chunk_cost_table(int stages, const ChunkCosts& chunk) {
  const auto value = [stages](const std::vector<Seconds>& list, int stage, std::string_view name) {
    if (list.size() != 1 && static_cast<int>(list.size()) != stages) {
      throw SpecError(fmt::format("the costs {} have {} entries for {} stages: give one, or one for each stage", name,
                                  list.size(), stages));
    }
    return list[list.size() == 1 ? 0 : static_cast<std::size_t>(stage)];
  };
  CostTable costs;
  costs.default_link.latency = chunk.hop_latency;
  costs.stages.resize(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    StageCosts& stage = costs.stages[s];
    const auto set = [&stage](Op op, Seconds seconds) {
      stage.segments[static_cast<std::size_t>(op)] = {{Segment{.seconds = seconds}}};
    };
    const Seconds forward = value(chunk.forward, s, "f");
    const Seconds input_grad = value(chunk.input_grad, s, "i");
    const Seconds weight_grad = value(chunk.weight_grad, s, "w");
    set(Op::kForward, forward);
    set(Op::kInputGrad, input_grad);
    set(Op::kWeightGrad, weight_grad);
    set(Op::kBackward, chunk.backward.empty() ? input_grad + weight_grad : value(chunk.backward, s, "b"));
    set(Op::kRecompute, chunk.recompute.empty() ? forward : value(chunk.recompute, s, "r"));
    set(Op::kOptimizerStep, value(chunk.optimizer, s, "o"));
    for (const Op op : {Op::kOffload, Op::kReload, Op::kEvict, Op::kLoad}) set(op, value(chunk.move, s, "x"));
    set(Op::kUnshard, value(chunk.unshard, s, "u"));
    set(Op::kReduceGrad, value(chunk.reduce_grad, s, "g"));
    for (const Op op : {Op::kSendWeights, Op::kSendWeightGrad}) set(op, value(chunk.weights, s, "weights"));
    stage.memory.forward_bytes = 1;
  }
  return costs;
}

}}  // namespace plumb::schedules
