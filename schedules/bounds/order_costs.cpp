#include "schedules/bounds/order_costs.h"

#include <algorithm>

#include "schedules/phases.h"

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

/// Returns the durations of the pairs of stages of one rank; empty if none takes less than its two actions.
PairTimes pair_times(const CostTable& table, const std::vector<StagePlace>& stages, bool whole_backwards) {
  const int count = static_cast<int>(stages.size());
  bool gains = false;
  const auto times = [&](Op op) {
    std::vector<std::int64_t> of_op;
    for (int f = 0; f < count; ++f) {
      for (int b = 0; b < count; ++b) {
        const Action forward{.op = Op::kForward, .stage = f};
        const Action backward{.op = op, .stage = b};
        const bool meet = stages[f].rank == stages[b].rank;
        const SimTime apart = meet ? duration_of(table, forward) + duration_of(table, backward) : SimTime{0};
        const SimTime together = meet ? pair_duration(table, forward, backward) : SimTime{0};
        gains = gains || together < apart;
        of_op.push_back(together.count());
      }
    }
    return of_op;
  };
  PairTimes pairs{.input_grad = whole_backwards ? std::vector<std::int64_t>{} : times(Op::kInputGrad),
                  .backward = times(Op::kBackward)};
  return gains ? pairs : PairTimes{};
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

std::int64_t duration_of(const OrderCosts& costs, const Action& action) {
  switch (action.op) {
    case Op::kForward:
      return costs.forward[action.stage];
    case Op::kBackward:
      return costs.input_grad[action.stage] + costs.weight_grad[action.stage];
    case Op::kInputGrad:
      return costs.input_grad[action.stage];
    default:
      return costs.weight_grad[action.stage];
  }
}

std::int64_t pair_duration(const OrderCosts& costs, const Action& forward, const Action& backward) {
  const std::int64_t apart = duration_of(costs, forward) + duration_of(costs, backward);
  if (!costs.has_pairs()) return apart;
  const std::vector<std::int64_t>& times =
      backward.op == Op::kInputGrad ? costs.pairs.input_grad : costs.pairs.backward;
  const std::size_t stages = costs.forward.size();
  return times.empty() ? apart : times[static_cast<std::size_t>(forward.stage) * stages + backward.stage];
}

OrderCosts costs_below_pairs(OrderCosts costs, const std::vector<StagePlace>& stages) {
  const OrderCosts given = costs;
  const auto beyond_forward = [&](Op op, int forward, int backward) {
    return pair_duration(given, {.op = Op::kForward, .stage = forward}, {.op = op, .stage = backward}) -
           given.forward[forward];
  };
  const int count = given.has_pairs() ? static_cast<int>(stages.size()) : 0;
  for (int b = 0; b < count; ++b) {
    std::int64_t whole = given.input_grad[b] + given.weight_grad[b];
    std::int64_t& input_grad = costs.input_grad[b];
    for (int f = 0; f < count; ++f) {
      if (stages[f].rank != stages[b].rank) continue;
      input_grad = std::min(input_grad, beyond_forward(Op::kInputGrad, f, b));
      whole = std::min(whole, beyond_forward(Op::kBackward, f, b));
    }
    input_grad = std::max<std::int64_t>(std::min(input_grad, whole), 0);
    costs.weight_grad[b] = std::clamp<std::int64_t>(whole - input_grad, 0, given.weight_grad[b]);
  }
  costs.pairs = {};
  return costs;
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
  costs.pairs = pair_times(table, stages, whole_backwards);
  if (costs.hop_busy == both_ways(std::vector<std::int64_t>(stages.size(), 0))) costs.hop_busy = {};
  return costs;
}

}}  // namespace plumb::schedules
