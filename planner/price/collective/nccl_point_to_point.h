#pragma once
// Send/recv and all-to-all over NCCL. NCCL has no time model of them; their mechanics give
//   send/recv   t = base + hop + bytes / path
//   all-to-all  t = base + batches hop + max(bytes (g-1)/n / inside, bytes (n-g)/n / NIC) + bytes / n / copy
// with the ring's base and hop times, LL up to 16 KiB a channel and Simple above, one batch for eight peers, the
// device's links inside the node, its share of the NICs outside, and the rank's own part copied in its memory. Sources:
// NVIDIA/nccl v2.30.7 src/enqueue.cc and src/include/device.h (Apache-2.0, facts restated); NVIDIA/nccl-tests#267
// explains the sum of both directions and the maximum of both wires by its bus bandwidth (48 GB/s of a NIC become 56
// GB/s on 6 nodes of 8).

#include <cstdint>

#include "planner/price/collective/nccl_tuning.h"

namespace plumb { inline namespace planner {

/// Returns the estimate of sending `bytes` from one rank to one other; `group` says whether they share a node. The
/// algorithm has no meaning.
NcclEstimate nccl_send(const NcclMachine& machine, const GroupPlacement& group, std::int64_t bytes);

/// Returns the estimate of an all-to-all; `bytes` is the whole buffer of one rank, its own part included.
NcclEstimate nccl_all_to_all(const NcclMachine& machine, const GroupPlacement& group, std::int64_t bytes);

}}  // namespace plumb::planner
