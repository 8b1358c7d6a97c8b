#include "schedules/weight_holders.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace plumb { inline namespace schedules {
namespace {

/// Returns the model parts of several lanes that list input gradients, and no gradient of weights.
std::set<int> parts_without_weights(const Schedule& schedule) {
  std::map<int, std::set<int>> lanes;  // by model part
  for (const StagePlace& place : schedule.stages) lanes[place.model_part].insert(place.lane);
  std::erase_if(lanes, [](const auto& part) { return part.second.size() == 1; });
  if (lanes.empty()) return {};
  std::set<int> trained, without;
  for (const std::vector<Action>& actions : schedule.ranks)
    for (const Action& action : actions) {
      const bool is_input_grad = action.op == Op::kInputGrad;
      if (!is_input_grad && !gives_weight_gradient(action.op)) continue;
      if (action.stage < 0 || action.stage >= static_cast<int>(schedule.stages.size())) continue;
      (is_input_grad ? without : trained).insert(schedule.stages[action.stage].model_part);
    }
  std::erase_if(without, [&](int part) { return trained.contains(part) || !lanes.contains(part); });
  return without;
}

}  // namespace

std::vector<int> weight_holders(const Schedule& schedule) {
  const std::set<int> without = parts_without_weights(schedule);
  std::map<std::pair<int, int>, int> first;  // by model part and rank
  std::vector<int> holders;
  for (int stage = 0; stage < static_cast<int>(schedule.stages.size()); ++stage) {
    const StagePlace& place = schedule.stages[stage];
    const int holder = first.try_emplace({place.model_part, place.rank}, stage).first->second;
    const bool shares = schedule.stages[holder].lane != place.lane;
    holders.push_back(without.contains(place.model_part) ? -1 : shares ? holder : stage);
  }
  return holders;
}

}}  // namespace plumb::schedules
