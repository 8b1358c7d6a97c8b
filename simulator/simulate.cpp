#include "simulator/simulate.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/action_table.h"
#include "schedules/validate.h"
#include "simulator/action_costs.h"
#include "simulator/engine.h"
#include "simulator/memory.h"
#include "simulator/summary.h"
#include "traces/statistics.h"

namespace plumb {
namespace {

/// "1f1b p=4 m=8", with "v=2" between where ranks run two chunks.
std::string title_of(const Schedule& schedule) {
  const std::size_t ranks = schedule.ranks.size();
  const std::size_t chunks = ranks == 0 ? 0 : schedule.stages.size() / ranks;
  return fmt::format("{} p={}{} m={}", schedule.name, ranks, chunks > 1 ? fmt::format(" v={}", chunks) : "",
                     schedule.microbatches);
}

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

Timeline timeline_of(const Schedule& schedule, const ActionTimes& times, std::vector<RankMemory> memory,
                     const std::vector<CriticalStep>& critical_path) {
  Timeline timeline{.title = title_of(schedule), .microbatches = schedule.microbatches, .stages = schedule.stages};
  timeline.ranks.resize(schedule.ranks.size());
  std::size_t id = 0;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    RankTimeline& rank = timeline.ranks[r];
    rank.memory = std::move(memory[r].samples);
    rank.spans.reserve(schedule.ranks[r].size());
    for (const Action& action : schedule.ranks[r]) {
      rank.spans.push_back(
          {.start = times.start[id], .end = times.end[id], .action = action, .stream = stream_of(action.op)});
      ++id;
    }
  }
  for (const CriticalStep& step : critical_path) timeline.ranks[step.rank].spans[step.position].critical = true;
  return timeline;
}

}  // namespace

Simulation simulate(const Schedule& lowered, const CompiledSchedule& compiled, const CostTable& costs,
                    bool record_timeline) {
  const ActionCosts converted = convert_costs(lowered, costs);
  const std::vector<StepCost> by_kind = step_costs(compiled, converted);
  const StepTimes times = step_times(compiled, by_kind);

  const SimTime makespan = *std::ranges::max_element(times.registers);
  const std::vector<RankStatistics> ranks = rank_statistics(compiled, by_kind, times, makespan);
  if (!record_timeline && holds_in_issue_order(lowered, compiled, costs))
    return summary_of(ranks, makespan, peaks_by_rank(lowered, compiled, costs, by_kind, times));

  const ActionTable table(lowered);
  const ActionTimes actions = action_times(lowered, table, compiled, converted);
  std::vector<RankMemory> memory = memory_by_rank(lowered, table, costs, actions, record_timeline);
  Simulation simulation = summary_of(ranks, makespan, memory);
  if (record_timeline) {
    simulation.critical_path = critical_path(lowered, actions);
    simulation.timeline = timeline_of(lowered, actions, std::move(memory), simulation.critical_path);
  }
  return simulation;
}

Simulation simulate(const Schedule& lowered, const CostTable& costs, const SimulationOptions& options) {
  if (options.validate) require_valid(lowered);
  return simulate(lowered, compile(lowered, options.sends), costs, options.record_timeline);
}

}  // namespace plumb
