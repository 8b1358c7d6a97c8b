#pragma once
// One exchange of a rank's call with other ranks: a collective of a group, or one end of a message. The ranks are those
// of the world (executor/spec/division/rank_grid.h). For each communicator, the groups, kinds, bytes and order are those of
// the cpu backend's messages and collectives; tests/executor/transport/nccl/order compares the two.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/groups/communicator_ranks.h"
#include "schedules/collective_kind.h"

namespace plumb { inline namespace executor {

/// All groups of a run, numbered alike on every rank, and the number of this rank.
struct DeviceGroups {
  std::vector<CommunicatorRanks> communicators;
  int rank = 0;   ///< number in the world
  int ranks = 1;  ///< size of the world
};

/// Sends and receives that the members make at once, as one group of calls.
enum class DevicePairs : std::uint8_t {
  kNone,
  kAllToAll,  ///< block i of `outgoing` goes to member i, which sends block i of `values`; the own one stays
  kShift,     ///< `outgoing` goes to the next member, and `values` comes from the one before
};

/// A rank's part of an exchange, in place. For all_gather a rank brings its block of `values`; after reduce_scatter
/// only its own block is defined.
struct DeviceExchange {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::int32_t communicator = 0;                ///< index in DeviceGroups::communicators
  std::int32_t member = 0;                      ///< this rank's number in it
  std::int32_t peer = CommunicatorSeat::kNone;  ///< the member at the other end, or the root
  bool is_stored = false;                       ///< true: elements have the format of activations; false: fp32
  std::byte* values = nullptr;                  ///< on the device; a send only reads it
  std::int64_t elements = 0;                    ///< elements of the whole buffer
  /// [members + 1] bounds of the blocks in elements; empty: equal blocks (executor/transport/collective.h,
  /// block_begin).
  std::vector<std::int64_t> bounds = {};
  DevicePairs pairs = DevicePairs::kNone;  ///< if not kNone, it replaces `kind`; blocks are equal
  const std::byte* outgoing = nullptr;     ///< the values that pairs send
};

}}  // namespace plumb::executor
