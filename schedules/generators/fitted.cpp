#include "schedules/generators/fitted.h"

#include <algorithm>

#include "schedules/bounds/lower_bound.h"
#include "schedules/synthesis/fit_to_costs.h"

namespace plumb { inline namespace schedules {
namespace {

/// Returns the costs of every stage with a hop behind each, whatever the placement.
OrderCosts costs_of(const ScheduleParameters& parameters, int stages) {
  return order_costs(chunk_cost_table(stages, parameters.costs), loop_placement(stages, stages));
}

}  // namespace

bool has_equal_costs(const ScheduleParameters& parameters, int stages) {
  const OrderCosts costs = costs_of(parameters, stages);
  const auto all_equal = [&costs](const std::vector<std::int64_t>& durations) {
    return std::ranges::all_of(durations, [&costs](std::int64_t d) { return d == costs.forward.front(); });
  };
  const bool has_hops = costs.hop != both_ways(std::vector<std::int64_t>(costs.forward.size(), 0));
  return !has_hops && all_equal(costs.forward) && all_equal(costs.input_grad) && all_equal(costs.weight_grad);
}

Schedule fitted(const std::vector<Schedule>& candidates, const ScheduleParameters& parameters, int rank_limit) {
  const Schedule& first = candidates.front();
  OrderQuestion question{.frame = {.name = first.name, .microbatches = first.microbatches, .stages = first.stages},
                         .ranks = parameters.ranks,
                         .costs = costs_of(parameters, static_cast<int>(first.stages.size()))};
  question.memory = counted_activations(question, rank_limit);
  const std::int64_t goal = std::max(parameters.goal_span.count(), best_bound(question).time);
  return fit_to_costs(candidates, question, {.goal = goal}).schedule;
}

}}  // namespace plumb::schedules
