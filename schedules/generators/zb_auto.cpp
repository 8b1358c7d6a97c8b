#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/generators/generators.h"
#include "schedules/synthesis/zero_bubble.h"

namespace plumb { inline namespace schedules {
namespace {

ChainCosts chain_of(const ScheduleParameters& parameters) {
  if (!(parameters.memory_ratio >= 1)) {
    throw ScheduleError(
        fmt::format("zb-auto cannot hold {} times as many activations as there are ranks: give 1 or more",
                    parameters.memory_ratio));
  }
  const double released = parameters.released_at_input_grad_ratio;
  if (!(released >= 0 && released < 1)) {
    throw ScheduleError(fmt::format(
        "an input gradient cannot free {} of an activation and leave the rest to W: give 0 or more, below 1",
        released));
  }
  constexpr std::int64_t kActivation = 1000;  // units of memory, so that shares are whole numbers of them
  const int p = parameters.ranks;
  const CostTable table = chunk_cost_table(p, parameters.costs);
  ChainCosts chain{.microbatches = parameters.microbatches,
                   .hop = to_sim_time(table.default_link.latency, "the latency of a hop"),
                   .activation_bytes = kActivation,
                   .released_at_input_grad_bytes = std::llround(released * kActivation)};
  const double held = std::min<double>(parameters.memory_ratio * p, parameters.microbatches);
  for (int r = 0; r < p; ++r) {
    const auto duration = [&](Op op) { return duration_of(table, {.op = op, .stage = r}); };
    chain.forward.push_back(duration(Op::kForward));
    chain.input_grad.push_back(duration(Op::kInputGrad));
    chain.weight_grad.push_back(duration(Op::kWeightGrad));
    chain.max_bytes.push_back(static_cast<std::int64_t>(held * kActivation));
  }
  return chain;
}

}  // namespace

Schedule zb_auto_schedule(const ScheduleParameters& parameters) {
  return synthesize_zero_bubble(chain_of(parameters)).schedule;
}

SimTime zb_auto_bound(const ScheduleParameters& parameters) {
  return chain_span_bound(chain_of(parameters));
}

}}  // namespace plumb::schedules
