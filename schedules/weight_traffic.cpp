#include "schedules/weight_traffic.h"

#include <algorithm>
#include <utility>

namespace plumb { inline namespace schedules {

std::vector<WeightTraffic> weight_traffic(const Schedule& schedule) {
  std::vector<WeightTraffic> ranks;
  std::vector<int> held_of_stage(schedule.stages.size(), 0);
  for (const std::vector<Action>& actions : schedule.ranks) {
    WeightTraffic& rank = ranks.emplace_back();
    int held = 0;
    for (const Action& action : actions) {
      rank.weights += action.op == Op::kSendWeights ? 1 : 0;
      rank.gradients += action.op == Op::kSendWeightGrad ? 1 : 0;
      if (action.op == Op::kRecvWeights) ++held, ++held_of_stage[action.stage];
      if (action.op == Op::kReshard) held -= std::exchange(held_of_stage[action.stage], 0);
      rank.most_held = std::max(rank.most_held, held);
    }
  }
  return ranks;
}

}}  // namespace plumb::schedules
