#include "schedules/synthesis/chain.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace plumb { inline namespace schedules {

namespace {

/// Refuses a chain that no order finishes before kLatestMoment. Any order does all the work of a rank, and takes one
/// micro-batch there and back: if both together are more than twice kLatestMoment, one of them ends later. For a chain
/// that passes, every sum of chain_span_bound is representable.
void require_early_chain(const ChainCosts& costs) {
  double way = 0;
  double work = 0;
  for (std::size_t s = 0; s < costs.forward.size(); ++s) {
    way += seconds(costs.forward[s]) + seconds(costs.input_grad[s]) + 2 * seconds(costs.hop);
    work = std::max(work, costs.microbatches * (seconds(costs.forward[s]) + seconds(costs.input_grad[s]) +
                                                seconds(costs.weight_grad[s])));
  }
  if (way + work > 2 * seconds(kLatestMoment)) refuse_late_moment("the schedule");
}

}  // namespace

SimTime chain_span(const ChainCosts& costs, const std::vector<std::vector<Action>>& orders) {
  constexpr SimTime kUnknown = SimTime::max();
  const int p = static_cast<int>(orders.size());
  const auto microbatches = static_cast<std::size_t>(costs.microbatches);
  std::vector<std::vector<SimTime>> forward_end(orders.size(), std::vector<SimTime>(microbatches, kUnknown));
  std::vector<std::vector<SimTime>> gradient_end = forward_end;
  std::vector<std::size_t> cursor(orders.size(), 0);
  std::vector<SimTime> first_start(orders.size());
  std::vector<SimTime> end(orders.size(), SimTime{0});

  /// Returns when the inputs of an action are there, or kUnknown if they are not made yet.
  const auto inputs_at = [&](const Action& a) {
    const int r = a.stage;
    if (a.op == Op::kWeightGrad) return SimTime{0};
    if (a.op == Op::kForward && r == 0) return SimTime{0};
    if (a.op == Op::kInputGrad && r == p - 1) return SimTime{0};
    const SimTime made = a.op == Op::kForward ? forward_end[r - 1][a.microbatch] : gradient_end[r + 1][a.microbatch];
    return made == kUnknown ? kUnknown : made + costs.hop;
  };

  for (bool moved = true; std::exchange(moved, false);) {
    for (int r = 0; r < p; ++r) {
      for (; cursor[r] < orders[r].size(); ++cursor[r], moved = true) {
        const Action& a = orders[r][cursor[r]];
        const SimTime ready = inputs_at(a);
        if (ready == kUnknown) break;
        const SimTime start = std::max(end[r], ready);
        if (cursor[r] == 0) first_start[r] = start;
        if (a.op == Op::kForward) end[r] = forward_end[r][a.microbatch] = start + costs.forward[r];
        if (a.op == Op::kInputGrad) end[r] = gradient_end[r][a.microbatch] = start + costs.input_grad[r];
        if (a.op == Op::kWeightGrad) end[r] = start + costs.weight_grad[r];
        if (end[r] > kLatestMoment) refuse_late_moment("the schedule");
      }
    }
  }
  SimTime span{0};
  for (int r = 0; r < p; ++r) {
    assert(cursor[r] == orders[r].size());
    span = std::max(span, end[r] - first_start[r]);
  }
  return span;
}

SimTime chain_span_bound(const ChainCosts& costs) {
  const int p = static_cast<int>(costs.forward.size());
  const std::int64_t m = costs.microbatches;
  require_early_chain(costs);
  SimTime bound{0};
  for (int j = 0; j < p; ++j) {
    const SimTime f = costs.forward[j];
    const SimTime b = costs.input_grad[j];
    const SimTime w = costs.weight_grad[j];
    SimTime first_gradient = f;  // after j's first start: the way to the last rank and back
    for (int s = j + 1; s < p; ++s) first_gradient += costs.forward[s] + costs.input_grad[s] + 2 * costs.hop;
    const std::int64_t fit = std::min(m, costs.max_bytes[j] / costs.activation_bytes);
    const SimTime forwards = std::max(m * f, first_gradient + (m - fit) * f);
    bound = std::max(bound, forwards + m * (b + w));

    // Ahead of its last forward at most m-1 input gradients have freed their part; weight gradients free the rest.
    const std::int64_t kept = costs.activation_bytes - costs.released_at_input_grad_bytes;
    const std::int64_t excess =
        m * costs.activation_bytes - (m - 1) * costs.released_at_input_grad_bytes - costs.max_bytes[j];
    const std::int64_t forced = excess <= 0 ? 0 : (excess + kept - 1) / kept;
    SimTime way = forwards + m * b + forced * w;
    bound = std::max(bound, way + w);
    for (int i = j - 1; i >= 0; --i) {
      way += costs.forward[i] + costs.input_grad[i] + 2 * costs.hop;
      bound = std::max(bound, way + costs.weight_grad[i]);
    }
  }
  return bound;
}

}}  // namespace plumb::schedules
