#include "simulator/simulation_of.h"

#include "simulator/summary.h"
#include "traces/draw/timeline_title.h"
#include "traces/statistics.h"

namespace plumb { inline namespace simulator {
namespace {

/// Adds up each rank's compute actions, which are in order and do not overlap but for pairs, whose time counts once.
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
                     const std::vector<CriticalStep>& critical_path, int replica) {
  Timeline timeline{
      .title = timeline_title(schedule), .microbatches = schedule.microbatches, .stages = schedule.stages};
  timeline.ranks.resize(schedule.ranks.size());
  std::size_t id = 0;
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    RankTimeline& rank = timeline.ranks[r];
    rank.memory = std::move(memory[r].samples);
    rank.memory_by_kind = std::move(memory[r].by_kind);
    rank.spans.reserve(schedule.ranks[r].size());
    for (const Action& action : schedule.ranks[r]) {
      rank.spans.push_back(
          {.start = times.start[id], .end = times.end[id], .action = action, .stream = stream_of(action.op)});
      ++id;
    }
  }
  for (const CriticalStep& step : critical_path) {
    if (step.replica == replica) timeline.ranks[step.rank].spans[step.position].critical = true;
  }
  return timeline;
}

}  // namespace

Simulation simulation_of(const Schedule& lowered, const ActionTimes& times, SimTime makespan,
                         std::vector<RankMemory> memory, std::optional<std::vector<CriticalStep>> path, int replica) {
  Simulation simulation = summary_of(rank_statistics(lowered, times, makespan), makespan, memory);
  if (path) {
    simulation.timeline = timeline_of(lowered, times, std::move(memory), *path, replica);
    simulation.critical_path = std::move(*path);
  }
  return simulation;
}

}}  // namespace plumb::simulator
