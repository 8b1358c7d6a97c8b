#include "schedules/generators/phases.h"

#include <algorithm>
#include <cassert>

namespace plumb { inline namespace schedules {

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

std::vector<Action> with_weight_grads(const std::vector<Action>& actions, int delay) {
  std::vector<Action> result;
  std::vector<Action> weight_grads;
  std::size_t listed = 0;
  for (const Action& action : actions) {
    result.push_back(action);
    if (action.op != Op::kInputGrad) continue;
    weight_grads.push_back(action);
    weight_grads.back().op = Op::kWeightGrad;
    if (weight_grads.size() > listed + static_cast<std::size_t>(delay)) result.push_back(weight_grads[listed++]);
  }
  result.insert(result.end(), weight_grads.begin() + static_cast<std::ptrdiff_t>(listed), weight_grads.end());
  return result;
}

std::vector<Action> each_microbatch(Op op, int stage, int microbatches) {
  std::vector<Action> actions;
  for (int i = 0; i < microbatches; ++i) actions.push_back(compute_action(op, stage, i));
  return actions;
}

}}  // namespace plumb::schedules
