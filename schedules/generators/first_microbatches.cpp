#include "schedules/generators/first_microbatches.h"

namespace plumb {

std::vector<Action> first_microbatches(const std::vector<Action>& actions, int count) {
  std::vector<Action> kept;
  kept.reserve(actions.size());
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].microbatch >= count) continue;
    kept.push_back(actions[i]);
    if (actions[i].overlaps_next) kept.back().overlaps_next = actions[i + 1].microbatch < count;
  }
  return kept;
}

}  // namespace plumb
