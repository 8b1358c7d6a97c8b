#include "simulator/summary.h"

#include <algorithm>

namespace plumb { inline namespace simulator {

SimTime longest_span(const Simulation& simulation) {
  SimTime longest{0};
  for (std::size_t rank = 0; rank < simulation.first_start.size(); ++rank)
    longest = std::max(longest, simulation.last_end[rank] - simulation.first_start[rank]);
  return longest;
}

Simulation summary_of(const std::vector<RankStatistics>& ranks, SimTime makespan,
                      const std::vector<RankMemory>& memory) {
  Simulation simulation;
  simulation.makespan = makespan;
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

}}  // namespace plumb::simulator
