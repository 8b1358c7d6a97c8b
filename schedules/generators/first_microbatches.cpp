#include "schedules/generators/first_microbatches.h"

#include <algorithm>

namespace plumb { inline namespace schedules {

std::vector<Action> first_microbatches(const std::vector<Action>& actions, int count) {
  int last = count - 1;
  for (const Action& action : actions) last = std::max(last, action.microbatch);
  std::vector<int> numbers(static_cast<std::size_t>(last) + 1, -1);
  for (int i = 0; i < count; ++i) numbers[i] = i;
  return renumbered_microbatches(actions, numbers);
}

std::vector<Action> renumbered_microbatches(const std::vector<Action>& actions, const std::vector<int>& numbers) {
  std::vector<Action> kept;
  kept.reserve(actions.size());
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const int number = numbers[actions[i].microbatch];
    if (number < 0) continue;
    kept.push_back(actions[i]);
    kept.back().microbatch = number;
    if (actions[i].overlaps_next) kept.back().overlaps_next = numbers[actions[i + 1].microbatch] >= 0;
  }
  return kept;
}

}}  // namespace plumb::schedules
