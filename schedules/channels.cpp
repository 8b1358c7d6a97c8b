#include "schedules/channels.h"

#include <map>

namespace plumb {

Channels channels_of(const Schedule& schedule, const StageNeighbors& neighbors) {
  const auto channel_from = [&](std::size_t stage, Op send) {
    const int to = (send == Op::kSendActivation ? neighbors.successor : neighbors.predecessor)[stage];
    return Channel{
        .source_rank = schedule.stages[stage].rank, .destination_rank = schedule.stages[to].rank, .send = send};
  };
  std::map<Channel, int> number_of;
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    if (neighbors.successor[s] >= 0) number_of.emplace(channel_from(s, Op::kSendActivation), -1);
    if (neighbors.predecessor[s] >= 0) number_of.emplace(channel_from(s, Op::kSendGradient), -1);
  }
  Channels result;
  for (auto& [channel, number] : number_of) {
    number = static_cast<int>(result.channels.size());
    result.channels.push_back(channel);
  }
  for (std::size_t s = 0; s < schedule.stages.size(); ++s) {
    result.of_activations.push_back(neighbors.successor[s] < 0 ? -1
                                                               : number_of.at(channel_from(s, Op::kSendActivation)));
    result.of_gradients.push_back(neighbors.predecessor[s] < 0 ? -1 : number_of.at(channel_from(s, Op::kSendGradient)));
  }
  return result;
}

}  // namespace plumb
