#pragma once
// Finds the messages that go as one group of NCCL's calls: a SEND and a RECV that are neighbours on one pipeline rank,
// and whose other ends are neighbours too, where grouping costs no time.
//
// A group starts when both of its messages have been made, and their places are free, on both ranks: NCCL makes it a
// point at which all of its streams meet ("Mixing multiple streams within the same group", NCCL user guide). So the
// message that was made first arrives later than it would alone. No action waits longer than before if each RECV has a
// compute action between itself and its consumer, and the message takes no longer than that action: the action ends at
// a time at which both messages could have arrived. `Receives::kEarly` leaves that room; `Receives::kLate` does not,
// and each exchange would then take its time between two actions.

#include <array>
#include <cstdint>
#include <vector>

#include "executor/spec/division/rank_grid.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// The position of the first of two neighbours in a pipeline rank's list.
struct NeighborPlace {
  std::int32_t rank = 0;
  std::int32_t position = 0;

  friend bool operator==(const NeighborPlace&, const NeighborPlace&) = default;
};

struct MessagePair {
  std::array<std::int32_t, 2> sends;  ///< action ids (schedules/dependencies/dependencies.h), ascending
  std::array<NeighborPlace, 2> ends;  ///< the exchange on each of the two ranks
};

/// Returns the pairs in the order of `sends`; no message is in two pairs. There are none between ranks whose meshes
/// differ, where a message is cut into pieces. `lowered` breaks no rule of schedules/rules/validate.h.
std::vector<MessagePair> message_pairs(const Schedule& lowered, const RankGrid& grid);

}}  // namespace plumb::executor
