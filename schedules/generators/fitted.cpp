#include "schedules/generators/fitted.h"

#include <algorithm>

#include "schedules/synthesis/fit_to_costs.h"

namespace plumb { inline namespace schedules {
namespace {

OrderCosts costs_of(const ScheduleParameters& parameters, int stages) {
  return order_costs(chunk_cost_table(stages, parameters.costs));
}

}  // namespace

bool has_equal_costs(const ScheduleParameters& parameters, int stages) {
  const OrderCosts costs = costs_of(parameters, stages);
  const auto all_equal = [&costs](const std::vector<std::int64_t>& durations) {
    return std::ranges::all_of(durations, [&costs](std::int64_t d) { return d == costs.forward.front(); });
  };
  return costs.hop == 0 && all_equal(costs.forward) && all_equal(costs.input_grad) && all_equal(costs.weight_grad);
}

Schedule fitted(const std::vector<Schedule>& candidates, const ScheduleParameters& parameters, int rank_limit) {
  const int stages = static_cast<int>(candidates.front().stages.size());
  return fit_to_costs(candidates, costs_of(parameters, stages), rank_limit, parameters.goal_span.count());
}

}}  // namespace plumb::schedules
