#pragma once
// Channels are the queues of the messages between two ranks. A channel is (source rank, destination rank, activations
// or gradients) and serves first in, first out (docs/design.md, rule 1).

#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct Channel {
  int source_rank = 0;
  int destination_rank = 0;
  Op send = Op::kSendActivation;  ///< kSendActivation or kSendGradient

  friend bool operator==(const Channel&, const Channel&) = default;
};

struct Channels {
  std::vector<Channel> channels;    ///< ascending by source rank, destination rank, direction
  std::vector<int> of_activations;  ///< [producing stage] index in `channels`; -1 where no stage of its lane follows
  std::vector<int> of_gradients;    ///< [producing stage] index in `channels`; -1 where no stage of its lane precedes
};

/// Returns the channels between neighbouring stages, including those between two stages of one rank.
Channels channels_of(const Schedule& schedule, const StageNeighbors& neighbors);

/// Returns the channel of a send, or -1 if its stage has no neighbour that way.
inline int channel_of(const Channels& channels, const Action& send) {
  return (send.op == Op::kSendActivation ? channels.of_activations : channels.of_gradients)[send.stage];
}

}}  // namespace plumb::schedules
