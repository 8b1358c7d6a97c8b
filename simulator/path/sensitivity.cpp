#include "simulator/path/sensitivity.h"

#include <algorithm>

#include "simulator/path/sensitivity_sums.h"

namespace plumb { inline namespace simulator {
namespace {

void add_message(SensitivitySums& sums, const Schedule& lowered, const StageNeighbors& neighbors,
                 const CostTable& costs, const CriticalStep& step, Seconds added) {
  const bool forward = step.action.op == Op::kSendActivation;
  const int reader = (forward ? neighbors.successor : neighbors.predecessor)[step.action.stage];
  const LinkCost& link = link_between(costs, step.rank, lowered.stages[reader].rank);
  const StageCosts& stage = costs.stages[step.action.stage];
  const std::int64_t bytes = forward ? stage.activation_message_bytes : stage.gradient_message_bytes;
  // A step that frees its channel adds no latency: delivery is later.
  const Seconds occupied =
      std::min(added, to_seconds(to_sim_time(Seconds{static_cast<double>(bytes) / link.bytes_per_second})));
  sums.add_message(step.action, occupied, added - occupied);
}

}  // namespace

Sensitivity sensitivity_of(const Schedule& lowered, const CostTable& costs, const std::vector<CriticalStep>& path) {
  SensitivitySums sums(lowered, costs);
  const StageNeighbors neighbors = stage_neighbors(lowered);
  const std::vector<SimTime> all_added = contributions(path);
  for (std::size_t i = 0; i < path.size(); ++i) {
    const CriticalStep& step = path[i];
    const Seconds added = to_seconds(all_added[i]);
    const Op op = step.action.op;
    if (is_compute(op)) {
      sums.add(actions_of(lowered, step), added);
    } else if (is_send(op)) {
      add_message(sums, lowered, neighbors, costs, step, added);
    } else if (sends_weights(op)) {
      const Seconds occupied = std::min(added, to_seconds(duration_of(costs, step.action)));
      sums.add_message(step.action, occupied, added - occupied);
    } else if (op == Op::kUnshard || op == Op::kReduceGrad) {
      sums.add(step.action, added);
    } else {
      sums.add_moves(added);  // a receive adds nothing
    }
  }
  return sums.finish();
}

}}  // namespace plumb::simulator
