#include "schedules/passes/insertions.h"

#include <algorithm>

namespace plumb { inline namespace schedules {

std::vector<Action> with_insertions(const std::vector<Action>& actions, std::vector<Insertion> insertions) {
  if (!std::ranges::is_sorted(insertions, {}, &Insertion::position))
    std::ranges::stable_sort(insertions, {}, &Insertion::position);
  std::vector<Action> result;
  result.reserve(actions.size() + insertions.size());
  auto next = insertions.begin();
  for (std::size_t i = 0; i <= actions.size(); ++i) {
    for (; next != insertions.end() && next->position == i; ++next) result.push_back(next->action);
    if (i < actions.size()) result.push_back(actions[i]);
  }
  return result;
}

std::size_t position_behind(const std::vector<Action>& actions, std::size_t position) {
  return actions[position].overlaps_next ? position + 2 : position + 1;
}

std::size_t position_before(const std::vector<Action>& actions, std::size_t position) {
  return position > 0 && actions[position - 1].overlaps_next ? position - 1 : position;
}

}}  // namespace plumb::schedules
