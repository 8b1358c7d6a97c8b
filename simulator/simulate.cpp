#include "simulator/simulate.h"

#include <algorithm>

#include "schedules/action_table.h"
#include "schedules/validate.h"
#include "simulator/action_costs.h"
#include "simulator/engine.h"
#include "simulator/simulation_of.h"

namespace plumb {

Simulation simulate(const Schedule& lowered, const CostTable& costs, const SimulationOptions& options) {
  if (options.validate) require_valid(lowered);
  const ActionCosts converted = convert_costs(lowered, costs);
  const ActionTable table(lowered);
  const ActionTimes times = action_times(lowered, table, converted, options.sends, options.record_timeline);
  const SimTime makespan = times.end.empty() ? SimTime{0} : *std::ranges::max_element(times.end);
  return simulation_of(lowered, table, costs, times, makespan, options.record_timeline);
}

}  // namespace plumb
