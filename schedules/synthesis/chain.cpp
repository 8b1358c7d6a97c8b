#include "schedules/synthesis/chain.h"

#include <algorithm>

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
