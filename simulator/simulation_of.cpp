#include "simulator/simulation_of.h"

#include <fmt/format.h>

namespace plumb {
namespace {

/// "1f1b p=4 m=8", with "v=2" between where ranks run two chunks.
std::string title_of(const Schedule& schedule) {
  const std::size_t ranks = schedule.ranks.size();
  const std::size_t chunks = ranks == 0 ? 0 : schedule.stages.size() / ranks;
  return fmt::format("{} p={}{} m={}", schedule.name, ranks, chunks > 1 ? fmt::format(" v={}", chunks) : "",
                     schedule.microbatches);
}

/// Of each rank's compute actions, which are in order and do not overlap but for pairs, whose time counts once.
std::vector<RankStatistics> rank_statistics(const Schedule& schedule, const ActionTimes& times, SimTime makespan) {
  std::vector<RankStatistics> ranks;
  std::size_t id = 0;
  for (const auto& actions : schedule.ranks) {
    RankStatistics rank;
    bool any = false;
    for (std::size_t i = 0; i < actions.size(); ++i, ++id) {
      if (!is_compute(actions[i].op)) continue;
      if (!any) rank.first_start = times.start[id];
      any = true;
      rank.last_end = times.end[id];
      const bool second_of_pair = i > 0 && actions[i - 1].overlaps_next;
      if (!second_of_pair) rank.busy += times.end[id] - times.start[id];
    }
    rank.idle = makespan - rank.busy;
    ranks.push_back(rank);
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

Simulation sums_of(SimTime makespan, const std::vector<RankStatistics>& ranks, const std::vector<RankMemory>& memory) {
  Simulation simulation{.makespan = makespan, .makespan_unshared = makespan};
  for (const RankStatistics& rank : ranks) {
    simulation.busy.push_back(rank.busy);
    simulation.first_start.push_back(rank.first_start);
    simulation.last_end.push_back(rank.last_end);
  }
  const Bubbles bubbles = bubbles_of(ranks, makespan);
  simulation.bubble_ratio = bubbles.bubble_ratio;
  simulation.span_bubble_ratio = bubbles.span_bubble_ratio;
  for (const RankMemory& rank : memory) {
    simulation.peak_memory_bytes.push_back(rank.peak_bytes);
    simulation.peak_activations.push_back(rank.peak_activations);
  }
  return simulation;
}

Simulation simulation_of(const Schedule& lowered, const ActionTable& table, const CostTable& costs,
                         const ActionTimes& times, SimTime makespan, bool record_timeline) {
  std::vector<RankMemory> memory = memory_by_rank(lowered, table, costs, times, record_timeline);
  Simulation simulation = sums_of(makespan, rank_statistics(lowered, times, makespan), memory);
  if (record_timeline) {
    simulation.critical_path = critical_path(lowered, times);
    simulation.timeline = timeline_of(lowered, times, std::move(memory), simulation.critical_path);
  }
  return simulation;
}

}  // namespace plumb
