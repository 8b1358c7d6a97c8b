#pragma once
// A call of NCCL that a rank makes on a communicator.
//
// Send and receive have no tags in NCCL: they match in their order by communicator and peer, and collectives match in
// their order by communicator. So every channel of the schedule (source, destination, activation or gradient) is a
// communicator of two ranks, and every group of ranks has a communicator of its own.

#include <cstdint>
#include <string>
#include <string_view>

#include "executor/groups/communicator_ranks.h"
#include "schedules/collective_kind.h"

namespace plumb { inline namespace executor {

struct NcclCall {
  static constexpr std::int32_t kNone = -1;

  /// A message (send, receive), or broadcast, reduce, all-gather, reduce-scatter or all-reduce. Blocks of an all-gather
  /// or reduce-scatter may differ in size; the call is then made as broadcasts, or reduces, in a group.
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::int32_t peer = kNone;  ///< member of the communicator: the other end of a message, or the root
  std::int64_t bytes = 0;     ///< whole buffer of one rank: the bytes of a message, or the sum of all blocks
};

/// Returns "send of 4096 bytes to rank 1 (activations, ranks 0, 1)", as `rank` makes the call.
std::string to_text(const CommunicatorRanks& communicator, int rank, const NcclCall& call);

}}  // namespace plumb::executor
