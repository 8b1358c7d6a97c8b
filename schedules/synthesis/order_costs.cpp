#include "schedules/synthesis/order_costs.h"

namespace plumb { inline namespace schedules {

OrderCosts equal_costs(const EqualCosts& costs, int stages) {
  const auto each = [stages](std::int64_t cost) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(stages), cost);
  };
  return {each(costs.forward), each(costs.input_grad), each(costs.weight_grad), costs.hop};
}

OrderCosts order_costs(const CostTable& table, bool whole_backwards) {
  const auto stages = static_cast<int>(table.stages.size());
  const auto each = [&](Op op) {
    std::vector<std::int64_t> durations;
    for (int s = 0; s < stages; ++s) durations.push_back(duration_of(table, Action{.op = op, .stage = s}).count());
    return durations;
  };
  return {.forward = each(Op::kForward),
          .input_grad = each(whole_backwards ? Op::kBackward : Op::kInputGrad),
          .weight_grad = whole_backwards ? std::vector<std::int64_t>(table.stages.size(), 0) : each(Op::kWeightGrad),
          .hop = to_sim_time(table.default_link.latency, "the latency of a hop").count()};
}

}}  // namespace plumb::schedules
