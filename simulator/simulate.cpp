#include "simulator/simulate.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/action_table.h"
#include "simulator/action_costs.h"
#include "simulator/engine.h"
#include "simulator/memory.h"

namespace plumb {
namespace {

std::string title_of(const Schedule& schedule) {
  return fmt::format("{} p={} m={}", schedule.name, schedule.ranks.size(), schedule.microbatches);
}

/// Fills what is known of each rank from its compute actions.
void add_rank_times(Simulation& simulation, const Schedule& schedule, const ActionTimes& times) {
  std::size_t id = 0;
  for (const auto& actions : schedule.ranks) {
    SimTime busy{0};
    SimTime first{0};
    SimTime last{0};
    bool any = false;
    for (std::size_t i = 0; i < actions.size(); ++i, ++id) {
      if (!is_compute(actions[i].op)) continue;
      if (!any) first = times.start[id];
      any = true;
      last = times.end[id];
      const bool second_of_pair = i > 0 && actions[i - 1].overlaps_next;
      if (!second_of_pair) busy += times.end[id] - times.start[id];
    }
    simulation.busy.push_back(busy);
    simulation.first_start.push_back(first);
    simulation.last_end.push_back(last);
  }
}

/// DESIGN.md section 3: 1 - sum(busy) / (p * makespan), and 1 - max(busy) / max(span). An empty schedule has no bubble.
void add_bubbles(Simulation& simulation) {
  if (simulation.makespan == SimTime{0}) return;
  double busy_sum = 0;
  SimTime largest_busy{0};
  SimTime largest_span{0};
  for (std::size_t r = 0; r < simulation.busy.size(); ++r) {
    busy_sum += static_cast<double>(simulation.busy[r].count());
    largest_busy = std::max(largest_busy, simulation.busy[r]);
    largest_span = std::max(largest_span, simulation.last_end[r] - simulation.first_start[r]);
  }
  const double ranks = static_cast<double>(simulation.busy.size());
  simulation.bubble_ratio = 1 - busy_sum / (ranks * static_cast<double>(simulation.makespan.count()));
  if (largest_span > SimTime{0}) {
    simulation.span_bubble_ratio = 1 - static_cast<double>(largest_busy.count()) / static_cast<double>(largest_span.count());
  }
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

Simulation simulate(const Schedule& lowered, const CostTable& costs, const SimulationOptions& options) {
  const ActionCosts converted = convert_costs(lowered, costs);
  const ActionTable table(lowered);
  const ActionTimes times = action_times(lowered, table, converted, options.sends, options.record_timeline);

  Simulation simulation;
  if (!times.end.empty()) simulation.makespan = *std::ranges::max_element(times.end);
  add_rank_times(simulation, lowered, times);
  add_bubbles(simulation);
  std::vector<RankMemory> memory = memory_by_rank(lowered, table, costs, times, options.record_timeline);
  for (const RankMemory& rank : memory) {
    simulation.peak_memory_bytes.push_back(rank.peak_bytes);
    simulation.peak_activations.push_back(rank.peak_activations);
  }
  if (options.record_timeline) {
    simulation.critical_path = critical_path(lowered, times);
    simulation.timeline = timeline_of(lowered, times, std::move(memory), simulation.critical_path);
  }
  return simulation;
}

}  // namespace plumb
