#include "schedules/passes/compute_steps.h"

namespace plumb { inline namespace schedules {

std::vector<ComputeStep> compute_steps(const std::vector<Action>& actions) {
  std::vector<ComputeStep> steps;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (!is_compute(actions[i].op)) continue;
    const bool is_pair = actions[i].overlaps_next && i + 1 < actions.size();
    steps.push_back({.first = i, .count = is_pair ? std::size_t{2} : std::size_t{1}});
    if (is_pair) ++i;
  }
  return steps;
}

}}  // namespace plumb::schedules
