#pragma once
// The calls of NCCL of all ranks of a run in one replay, as a value that a test can check: for each world rank its
// calls in the order in which its host makes them, each on a stream and behind the calls that it waits for.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/transport/nccl/nccl_call.h"

namespace plumb::test {

struct OrderedCall {
  static constexpr std::int32_t kNone = NcclCall::kNone;

  std::optional<CollectiveKind> kind;  ///< none: kernels of the rank, which calls wait for, and which wait for calls
  std::int32_t communicator = kNone;   ///< of NcclOrder::communicators; kNone for kernels
  std::int32_t peer = kNone;           ///< as NcclCall::peer
  std::int32_t stream = 0;             ///< of the rank
  std::int32_t group = kNone;   ///< calls with one number stand together, between ncclGroupStart and ncclGroupEnd
  std::string action;           ///< text of the action that it belongs to; may be empty
  std::int32_t first_wait = 0;  ///< in RankOrder::waits
  std::int32_t waits = 0;
  std::int64_t bytes = 0;  ///< as NcclCall::bytes
};

struct RankOrder {
  std::vector<OrderedCall> calls;   ///< in the order in which the host makes them
  std::vector<std::int32_t> waits;  ///< earlier calls of this rank on other streams, by OrderedCall::first_wait
};

struct NcclOrder {
  std::vector<CommunicatorRanks> communicators;
  std::vector<RankOrder> ranks;  ///< [world rank]
};

/// Returns "rank 1, call 7 (F3): send of 4096 bytes to rank 2 (activations, ranks 1, 2)", or "...: kernels".
std::string text_of_call(const NcclOrder& order, std::int32_t rank, std::int32_t call);

/// Returns the most kernels of NCCL that start together on a rank: those of a group, one for each of its communicators.
/// An order needs that many places for kernels that wait.
int most_kernels_of_a_group(const NcclOrder& order);

}  // namespace plumb::test
