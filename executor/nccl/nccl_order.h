#pragma once
// Everything that the ranks of a run ask of NCCL in one replay, as a value made on the host before the first step: for
// each world rank the calls in the order in which its host makes them, each on a stream of a communicator and behind
// what it waits for. check_nccl_order.h proves that the ranks agree and that no order of progress deadlocks.
//
// Send and receive have no tags in NCCL: they match in their order by communicator and peer, and collectives by
// communicator. So every channel of the schedule (source, destination, activation or gradient) is a communicator of
// two, and every group of ranks one of its own.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "executor/training/training_plan.h"

namespace plumb { inline namespace executor {

enum class NcclKind : std::uint8_t {
  kCompute,        ///< kernels of the rank between two calls: no call of NCCL, but what calls wait for, and wait on
  kSend,           ///< to `peer`
  kReceive,        ///< from `peer`
  kBroadcast,      ///< from `peer`
  kReduce,         ///< sums to `peer`
  kAllGather,      ///< blocks may differ in size: then it is done as broadcasts in a group
  kReduceScatter,  ///< likewise, as reduces
  kAllReduce,
};

/// "send", "receive", "broadcast", ...
std::string_view nccl_kind_name(NcclKind kind);

struct NcclCall {
  static constexpr std::int32_t kNone = -1;

  NcclKind kind = NcclKind::kCompute;
  bool is_bound = false;              ///< `bytes` is the most that it can be: the router's picks decide
  std::int32_t communicator = kNone;  ///< of NcclOrder::communicators; kNone for compute
  std::int32_t peer = kNone;          ///< member of the communicator: the other end, or the root
  std::int32_t stream = 0;            ///< of the rank; 0 is compute's, otherwise 1 + the communicator
  std::int32_t group = kNone;         ///< calls with one number stand together, between ncclGroupStart and ncclGroupEnd
  std::int32_t action = 0;            ///< its place in the list of the pipeline rank
  std::int32_t first_wait = 0;        ///< in NcclRank::waits
  std::int32_t waits = 0;
  std::int64_t bytes = 0;  ///< of the whole buffer of one rank: what is sent, received, or the sum of all blocks
};

struct NcclRank {
  std::vector<NcclCall> calls;      ///< in the order in which the host makes them
  std::vector<std::int32_t> waits;  ///< earlier calls of this rank on other streams, by NcclCall::first_wait
};

struct NcclCommunicator {
  std::string name;        ///< "activations", "tensor group", ...
  std::vector<int> ranks;  ///< world ranks; members are numbered by their place
};

struct NcclOrder {
  std::vector<NcclCommunicator> communicators;
  std::vector<NcclRank> ranks;  ///< [world rank]
};

struct NcclOrderOptions {
  bool one_order = true;        ///< in one launch order for all ranks (launch_order.h), not each in its list's
  bool group_exchanges = true;  ///< a SEND and a RECV side by side at both ends are one group (message_pairs.h)
};

/// Of a run that plan_training() accepts. Every rank computes all ranks' lists from the same values.
NcclOrder plan_nccl_order(const RunSpec& spec, const TrainingPlan& plan, const NcclOrderOptions& options = {});

/// Calls of NCCL in it, without compute.
std::int64_t nccl_call_count(const NcclOrder& order);

/// Of everything that the ranks must agree on: compared before communicators are made.
std::uint64_t fingerprint(const NcclOrder& order);

/// "send of 4096 bytes to rank 1 (activations, ranks 0, 1)".
std::string to_text(const NcclCommunicator& communicator, int rank, const NcclCall& call);
std::string to_text(const NcclOrder& order, int rank, const NcclCall& call);

}}  // namespace plumb::executor
