#include "schedules/generators/generators.h"
#include "schedules/synthesis/list_scheduler.h"

namespace plumb { inline namespace schedules {

Schedule hanayo_schedule(const ScheduleParameters& parameters) {
  const int p = parameters.ranks;
  const int stages = p * parameters.chunks;
  const OrderQuestion question{
      .frame = {.name = "hanayo", .microbatches = parameters.microbatches, .stages = snake_placement(p, stages)},
      .ranks = p,
      .costs = equal_costs({.forward = 1, .input_grad = 1}, stages),
      .whole_backwards = true};
  // Backwards go first, then the forward of the deepest chunk, with p micro-batches under way.
  ListRules rules;
  for (int s = 0; s < stages; ++s) {
    rules.forward_urgency.push_back(stages - s);
    rules.backward_urgency.push_back(0);
    rules.max_in_flight.push_back(p);
  }
  return list_schedule(question, rules);
}

}}  // namespace plumb::schedules
