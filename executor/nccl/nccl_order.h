#pragma once
// All calls of NCCL that the ranks of a run make in one replay, as a value that the host makes before the first step.
// It has for each world rank the calls in the order in which its host makes them, each on a stream of a communicator
// and with the calls that it waits for. check_nccl_order.h proves that the ranks agree and that no order of progress
// deadlocks.
//
// Send and receive have no tags in NCCL: they match in their order by communicator and peer, and collectives by
// communicator. So every channel of the schedule (source, destination, activation or gradient) has a communicator of
// two, and every group of ranks one of its own.
// two, and every group of ranks one of its own.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "executor/training/training_plan.h"

namespace plumb { inline namespace executor {

enum class NcclKind : std::uint8_t {
  kCompute,        ///< the rank's kernels between two calls, which wait for calls and which calls wait for
  kSend,           ///< to `peer`
  kReceive,        ///< from `peer`
  kBroadcast,      ///< from `peer`
  kReduce,         ///< sums to `peer`
  kAllGather,      ///< blocks may differ in size: then it is made of broadcasts in a group
  kReduceScatter,  ///< blocks may differ in size: then it is made of reduces in a group
  kAllReduce,
};

/// Returns "send", "receive", "broadcast", ...
std::string_view nccl_kind_name(NcclKind kind);

struct NcclCall {
  static constexpr std::int32_t kNone = -1;

  NcclKind kind = NcclKind::kCompute;
  bool is_bound = false;              ///< true: `bytes` is an upper bound, since the router's picks decide
  std::int32_t communicator = kNone;  ///< index in NcclOrder::communicators; kNone for compute
  std::int32_t peer = kNone;          ///< member of the communicator at the other end, or the root
  std::int32_t stream = 0;            ///< stream of the rank: 0 is compute's, otherwise 1 + the communicator
  /// Calls with the same number are neighbours, between ncclGroupStart and ncclGroupEnd.
  std::int32_t group = kNone;
  std::int32_t action = 0;      ///< its place in the list of the pipeline rank
  std::int32_t first_wait = 0;  ///< index of its first wait in NcclRank::waits
  std::int32_t waits = 0;
  /// Bytes of one rank's whole buffer: those that are sent or received, or the sum of all blocks.
  std::int64_t bytes = 0;
};

struct NcclRank {
  std::vector<NcclCall> calls;      ///< in the order in which the host makes them
  std::vector<std::int32_t> waits;  ///< earlier calls of this rank on other streams, by NcclCall::first_wait
};

struct NcclCommunicator {
  std::string name;        ///< "activations", "tensor group", ...
  std::vector<int> ranks;  ///< world ranks; a member's number is its place in the list
};

struct NcclOrder {
  std::vector<NcclCommunicator> communicators;
  std::vector<NcclRank> ranks;  ///< [world rank]
};

struct NcclOrderOptions {
  /// One launch order for all ranks (launch_order.h), instead of the order of each rank's list.
  bool one_order = true;
  bool group_exchanges = true;  ///< a SEND and a RECV that are neighbours at both ends are one group (message_pairs.h)
};

/// Returns the calls of a run that plan_training() accepts. Every rank computes all ranks' lists from the same values.
NcclOrder plan_nccl_order(const RunSpec& spec, const TrainingPlan& plan, const NcclOrderOptions& options = {});

/// Returns the number of calls of NCCL, without compute.
std::int64_t nccl_call_count(const NcclOrder& order);

/// Returns the fingerprint of everything that the ranks must agree on; it is compared before communicators are made.
std::uint64_t fingerprint(const NcclOrder& order);

/// Returns the text of a call, e.g. "send of 4096 bytes to rank 1 (activations, ranks 0, 1)".
std::string to_text(const NcclCommunicator& communicator, int rank, const NcclCall& call);
std::string to_text(const NcclOrder& order, int rank, const NcclCall& call);

}}  // namespace plumb::executor
