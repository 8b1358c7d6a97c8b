#include "simulator/simulate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "schedules/dependencies/action_table.h"
#include "schedules/error.h"
#include "schedules/rules/validate.h"
#include "simulator/engine/action_costs.h"
#include "simulator/engine/engine.h"
#include "simulator/memory/memory.h"
#include "simulator/simulation_of.h"
#include "simulator/summary.h"
#include "traces/statistics.h"

namespace plumb { inline namespace simulator {
namespace {

/// Compute actions of a rank are in order and do not overlap but for pairs, which are one step: no time but that of the
/// first step is needed.
std::vector<RankStatistics> rank_statistics(const CompiledSchedule& compiled, const std::vector<StepCost>& costs,
                                            const StepTimes& times, SimTime makespan) {
  std::vector<RankStatistics> ranks(static_cast<std::size_t>(compiled.ranks));
  for (std::size_t k = 0; k < compiled.kinds.size(); ++k) {
    const StepKind& kind = compiled.kinds[k];
    if (kind.occupies_rank) ranks[kind.rank].busy += kind.steps * costs[k].duration;
  }
  for (int r = 0; r < compiled.ranks; ++r) {
    const std::int64_t first = compiled.first_steps[r];
    if (first >= 0) ranks[r].first_start = times.start[first];
    ranks[r].last_end = times.registers[rank_register(r)];
    ranks[r].idle = makespan - ranks[r].busy;
  }
  return ranks;
}

}  // namespace

Simulation simulate(const Schedule& lowered, const CompiledSchedule& compiled, const CostTable& costs,
                    bool record_timeline, bool record_memory) {
  const ActionCosts converted = convert_costs(lowered, costs);
  const std::vector<StepCost> by_kind = step_costs(compiled, converted);
  const StepTimes times = step_times(compiled, by_kind);

  const SimTime makespan = *std::ranges::max_element(times.registers);
  const bool keep_samples = record_timeline && record_memory;
  std::optional<std::vector<RankMemory>> peaks;
  if (!keep_samples && holds_in_issue_order(lowered, compiled, costs))
    peaks = peaks_by_rank(lowered, compiled, costs, by_kind, times);
  if (!record_timeline && peaks)
    return summary_of(rank_statistics(compiled, by_kind, times, makespan), makespan, *peaks);
  const ActionTable table(lowered);
  const ActionTimes actions = action_times(lowered, table, compiled, converted);
  return simulation_of(lowered, actions, makespan,
                       peaks ? std::move(*peaks) : memory_by_rank(lowered, table, costs, actions, keep_samples),
                       record_timeline ? std::optional(critical_path(lowered, actions)) : std::nullopt);
}

Simulation simulate(const Schedule& lowered, const CostTable& costs, const SimulationOptions& options) {
  if (options.sends == Sends::kBlocking)
    throw ScheduleError("blocking sends are checked, not simulated: validate with them, and simulate rendezvous sends");
  if (options.validate) require_valid(lowered);
  const CompiledSchedule compiled = compile(lowered, options.sends);
  if (options.burst_bytes == 0)
    return simulate(lowered, compiled, costs, options.record_timeline, options.record_memory);
  const ActionTable table(lowered);
  const ActionTimes actions = action_times(lowered, table, compiled, convert_costs(lowered, costs),
                                           burst_times(lowered, compiled, costs, options.burst_bytes));
  const SimTime makespan = actions.end.empty() ? SimTime{0} : *std::ranges::max_element(actions.end);
  return simulation_of(lowered, actions, makespan,
                       memory_by_rank(lowered, table, costs, actions, options.record_memory),
                       critical_path(lowered, actions));
}

}}  // namespace plumb::simulator
