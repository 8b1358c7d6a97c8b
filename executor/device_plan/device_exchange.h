#pragma once
// What a call of a rank exchanges with other ranks, and with whom: one collective of a group, or one end of a message.
// The ranks are those of the world (executor/division/rank_grid.h). Groups, kinds, bytes and order on each communicator
// are those of the messages and collectives of the cpu backend; tests/executor/nccl/order holds the two against each
// other.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/nccl/nccl_call.h"

namespace plumb { inline namespace executor {

/// All groups of a run, numbered alike on every rank, and which rank this is.
struct DeviceGroups {
  std::vector<NcclCommunicator> communicators;
  int rank = 0;   ///< of the world
  int ranks = 1;  ///< in the world
};

/// Sends and receives that members make at once, as one group of calls.
enum class DevicePairs : std::uint8_t {
  kNone,
  kAllToAll,  ///< block i of `outgoing` goes to member i, block i of `values` comes from it; the own one stays
  kShift,     ///< all of `outgoing` goes to the next member, all of `values` comes from the one before
};

/// A rank's part. It is in place: of all_gather a rank brings its block of `values`, and of reduce_scatter its block is
/// what counts afterwards, the others being undefined.
struct DeviceExchange {
  NcclKind kind = NcclKind::kAllReduce;
  std::int32_t communicator = 0;           ///< of DeviceGroups::communicators
  std::int32_t member = 0;                 ///< this rank's number in it
  std::int32_t peer = NcclCall::kNone;     ///< a member: the other end, or the root
  bool is_stored = false;                  ///< elements are as activations are stored; otherwise fp32
  std::byte* values = nullptr;             ///< on the device; of a send it is only read
  std::int64_t elements = 0;               ///< of the whole buffer
  std::vector<std::int64_t> bounds = {};   ///< [members + 1] of the blocks in elements; empty: equal ones
                                           ///< (executor/transport/collective.h, block_begin)
  DevicePairs pairs = DevicePairs::kNone;  ///< then in the place of `kind`; blocks are equal
  const std::byte* outgoing = nullptr;     ///< of pairs
};

}}  // namespace plumb::executor
