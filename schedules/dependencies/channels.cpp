#include "schedules/dependencies/channels.h"

#include <map>
#include <tuple>

namespace plumb { inline namespace schedules {

Channels channels_of(const Schedule& schedule, const StageNeighbors& neighbors) {
  using Key = std::tuple<int, int, Op>;  // source rank, destination rank, send
  const auto channel_from = [&](std::size_t stage, Op send) {
    const int to = (send == Op::kSendActivation ? neighbors.successor : neighbors.predecessor)[stage];
    return Key{schedule.stages[stage].rank, schedule.stages[to].rank, send};
  };
  std::map<Key, int> number_of;
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    if (neighbors.successor[s] >= 0) number_of.emplace(channel_from(s, Op::kSendActivation), -1);
    if (neighbors.predecessor[s] >= 0) number_of.emplace(channel_from(s, Op::kSendGradient), -1);
  }
  Channels result;
  for (auto& [channel, number] : number_of) {
    number = static_cast<int>(result.channels.size());
    result.channels.push_back({std::get<0>(channel), std::get<1>(channel), std::get<2>(channel)});
  }
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    result.of_activations.push_back(neighbors.successor[s] < 0 ? -1
                                                               : number_of.at(channel_from(s, Op::kSendActivation)));
    result.of_gradients.push_back(neighbors.predecessor[s] < 0 ? -1 : number_of.at(channel_from(s, Op::kSendGradient)));
  }
  return result;
}

}}  // namespace plumb::schedules
