#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/generators/generators.h"
#include "schedules/synthesis/list_scheduler.h"

namespace plumb { inline namespace schedules {

Schedule chimera_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int m = parameters.microbatches;
  if (p % 2 != 0 || m < 2) {
    throw ScheduleError(fmt::format(
        "chimera demands p even, m >= 2, not {} ranks and {} micro-batches: change them, or use 1f1b", p, m));
  }
  const OrderQuestion question{.frame = {.name = "chimera", .microbatches = m, .stages = bidirectional_placement(p)},
                               .ranks = p,
                               .costs = equal_costs({.forward = 1, .input_grad = 1}, 2 * p),
                               .whole_backwards = true};
  // Each lane is a 1F1B: backwards go first, and a stage holds as many activations as stages are left in its lane.
  // The lane whose micro-batch is the earlier one of its lane goes first where the lanes meet.
  ListRules rules;
  for (const StagePlace& place : question.frame.stages) {
    rules.forward_urgency.push_back(1);
    rules.backward_urgency.push_back(0);
    rules.max_in_flight.push_back(p - place.model_part);
  }
  rules.period = 1;
  return list_schedule(question, rules);
}

}}  // namespace plumb::schedules
