#include "planner/evaluate/noisy_evaluation.h"

#include <fmt/format.h>

#include "schedules/error.h"
#include "simulator/network/network_noise.h"

namespace plumb { inline namespace planner {

NoisySteps noisy_steps_of(const Evaluation& evaluation, NoiseSpec noise, Sends sends) {
  if (evaluation.lowered.ranks.empty())
    throw SpecError(fmt::format("noise: {} has too many micro-batches to simulate a run of each: leave the noise out",
                                to_text(evaluation.layout)));
  noise.replicas = evaluation.layout.data;
  const NetworkSpec alone{.replicas = noise.replicas};
  return simulate_noise(evaluation.lowered, evaluation.costs, evaluation.network.value_or(alone), noise, sends);
}

}}  // namespace plumb::planner
