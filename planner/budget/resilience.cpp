#include "planner/budget/resilience.h"

#include <cmath>

#include "planner/budget/spares.h"

namespace plumb { inline namespace planner {

Resilience resilience(const ReliabilitySpec& spec, const ResilienceQuestion& question) {
  const double bytes_per_second = spec.storage_bytes_per_second_per_node.value * question.nodes;
  Resilience answer{.interruptions = {.mean_between = mean_time_between_interruptions(spec, question.devices),
                                      .restart = Seconds{spec.restart_seconds.value},
                                      .checkpoint = Seconds{question.checkpoint_bytes / bytes_per_second}},
                    .checkpoint_bytes = question.checkpoint_bytes};
  const Interruptions& interruptions = answer.interruptions;
  answer.interval = question.interval.value_or(best_interval(interruptions));
  answer.goodput = goodput(interruptions, answer.interval);
  if (std::isinf(interruptions.mean_between.count())) {
    answer.simulated.goodput = answer.goodput;
    return answer;
  }
  answer.simulated = simulate_goodput(interruptions, answer.interval, question.run);
  answer.spare_nodes = spare_nodes(spec.repair_seconds.value / interruptions.mean_between.count(), kSpareProbability);
  return answer;
}

}}  // namespace plumb::planner
