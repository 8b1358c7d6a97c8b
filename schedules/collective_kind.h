#pragma once
// The collectives of a group of ranks: those that cost tables price, those that the executor runs besides, and the two
// ends of a message, which NCCL calls in the same way.

#include <cstdint>
#include <string_view>

namespace plumb { inline namespace schedules {

enum class CollectiveKind : std::uint8_t {
  kAllReduce,      ///< everyone gets the sum
  kAllGather,      ///< everyone gets each member's block
  kReduceScatter,  ///< each member gets the sum of its block
  kAllToAll,       ///< everyone gets a block from each member, and sends one to each
  kBroadcast,      ///< everyone gets the root's values
  kScatter,        ///< each member gets its block of the root's values
  kGather,         ///< the root gets each member's block
  kReduce,         ///< the root gets the sum
  kShift,          ///< everyone sends to a member some ranks further, and receives from one as many ranks before
  kSend,           ///< one end of a message between two members
  kReceive,        ///< the other end
};
inline constexpr int kCollectiveKindCount = 9;    ///< the collectives, which are the first ones; messages come behind
inline constexpr int kPricedCollectiveCount = 5;  ///< the first ones, which cost tables price

/// True if cost tables price it.
constexpr bool is_priced(CollectiveKind kind) {
  return static_cast<int>(kind) < kPricedCollectiveCount;
}

/// Returns "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "scatter", "gather", "reduce",
/// "shift", "send" or "receive".
std::string_view collective_name(CollectiveKind kind);

}}  // namespace plumb::schedules
