#include "schedules/generators/phases.h"

#include <algorithm>
#include <cassert>

namespace plumb {

std::vector<Action> one_forward_one_backward(const std::vector<Action>& forwards, const std::vector<Action>& backwards,
                                             int warmup) {
  assert(forwards.size() == backwards.size());
  const std::size_t ahead = std::min(static_cast<std::size_t>(warmup), forwards.size());
  std::vector<Action> actions(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(ahead));
  actions.reserve(2 * forwards.size());
  for (std::size_t i = ahead; i < forwards.size(); ++i) {
    actions.push_back(forwards[i]);
    actions.push_back(backwards[i - ahead]);
  }
  actions.insert(actions.end(), backwards.end() - static_cast<std::ptrdiff_t>(ahead), backwards.end());
  return actions;
}

}  // namespace plumb
