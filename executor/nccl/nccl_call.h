#pragma once
// A call of NCCL that a rank makes, and the communicator on which it makes it.
//
// Send and receive have no tags in NCCL: they match in their order by communicator and peer, and collectives match in
// their order by communicator. So every channel of the schedule (source, destination, activation or gradient) is a
// communicator of two ranks, and every group of ranks has a communicator of its own.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace executor {

enum class NcclKind : std::uint8_t {
  kSend,           ///< to `peer`
  kReceive,        ///< from `peer`
  kBroadcast,      ///< from `peer`
  kReduce,         ///< sums to `peer`
  kAllGather,      ///< blocks may differ in size: then it is done as broadcasts in a group
  kReduceScatter,  ///< blocks may differ in size: then it is done as reduces in a group
  kAllReduce,
};

/// Returns "send", "receive", "broadcast", ...
std::string_view nccl_kind_name(NcclKind kind);

struct NcclCall {
  static constexpr std::int32_t kNone = -1;

  NcclKind kind = NcclKind::kAllReduce;
  std::int32_t peer = kNone;  ///< member of the communicator: the other end of a message, or the root
  std::int64_t bytes = 0;     ///< whole buffer of one rank: the bytes of a message, or the sum of all blocks
};

struct NcclCommunicator {
  std::string name;        ///< "activations", "tensor group", ...
  std::vector<int> ranks;  ///< world ranks; members are numbered by their place
};

/// Returns "send of 4096 bytes to rank 1 (activations, ranks 0, 1)", as `rank` makes the call.
std::string to_text(const NcclCommunicator& communicator, int rank, const NcclCall& call);

}}  // namespace plumb::executor
