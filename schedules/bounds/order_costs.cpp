#include "schedules/bounds/order_costs.h"

#include <algorithm>

namespace plumb { inline namespace schedules {
namespace {

/// Returns the time for which a message has its link to itself.
std::int64_t busy_time(const LinkCost& link, std::int64_t bytes) {
  return to_sim_time(Seconds{static_cast<double>(bytes) / link.bytes_per_second}, "a message").count();
}

std::int64_t message_time(const LinkCost& link, std::int64_t bytes) {
  const Seconds occupied{static_cast<double>(bytes) / link.bytes_per_second};
  return to_sim_time(link.latency + occupied, "a hop").count();
}

}  // namespace

HopTimes both_ways(const std::vector<std::int64_t>& times) {
  return {.activation = times, .gradient = times};
}

OrderCosts equal_costs(const EqualCosts& costs, int stages) {
  const auto each = [stages](std::int64_t cost) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(stages), cost);
  };
  return {each(costs.forward), each(costs.input_grad), each(costs.weight_grad), both_ways(each(costs.hop)),
          costs.hop_busy > 0 ? both_ways(each(costs.hop_busy)) : HopTimes{}};
}

OrderCosts order_costs(const CostTable& table, const std::vector<StagePlace>& stages, bool whole_backwards) {
  const auto each = [&](Op op) {
    std::vector<std::int64_t> durations;
    for (int s = 0; s < static_cast<int>(stages.size()); ++s) {
      durations.push_back(duration_of(table, Action{.op = op, .stage = s}).count());
    }
    return durations;
  };
  OrderCosts costs{.forward = each(Op::kForward),
                   .input_grad = each(whole_backwards ? Op::kBackward : Op::kInputGrad),
                   .weight_grad = whole_backwards ? std::vector<std::int64_t>(stages.size(), 0) : each(Op::kWeightGrad),
                   .hop = both_ways(std::vector<std::int64_t>(stages.size(), 0)),
                   .hop_busy = both_ways(std::vector<std::int64_t>(stages.size(), 0))};
  const StageNeighbors neighbors = stage_neighbors({.stages = stages});
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const int next = neighbors.successor[s];
    if (next < 0 || stages[next].rank == stages[s].rank) continue;
    const int here = stages[s].rank;
    const int there = stages[next].rank;
    const LinkCost& forth = link_between(table, here, there);
    const LinkCost& back = link_between(table, there, here);
    const std::int64_t activation = table.stages[s].activation_message_bytes;
    const std::int64_t gradient = table.stages[next].gradient_message_bytes;
    costs.hop.activation[s] = message_time(forth, activation);
    costs.hop.gradient[s] = message_time(back, gradient);
    costs.hop_busy.activation[s] = busy_time(forth, activation);
    costs.hop_busy.gradient[s] = busy_time(back, gradient);
  }
  if (costs.hop_busy == both_ways(std::vector<std::int64_t>(stages.size(), 0))) costs.hop_busy = {};
  return costs;
}

}}  // namespace plumb::schedules
