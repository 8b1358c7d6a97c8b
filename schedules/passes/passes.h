#pragma once
// The passes of lowering. Each is a function from a schedule to a schedule; none looks at costs.

#include <cstdint>
#include <vector>

#include "schedules/passes/add_lifespan_offload.h"
#include "schedules/passes/add_offload.h"
#include "schedules/passes/add_sharding.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Says which micro-batches keep only their stage's input and run the forward again (torchgpipe's and PyTorch Pipe's
/// modes).
enum class Checkpoint : std::uint8_t { kNever, kExceptLast, kAlways };

/// Adds R right before each B or I (before the pair, where it is one of an overlapped pair) of the micro-batches that
/// are checkpointed. The rank recomputes before it waits for the gradient, so that R is not on the way of the gradients
/// from rank to rank. kExceptLast leaves out a lane's last micro-batch. Runs ahead of add_messages, which then posts
/// the gradient's receive ahead of R.
Schedule add_recompute(Schedule schedule, Checkpoint checkpoint);

/// Appends an OPTIMIZER_STEP of each stage to its rank's list, in stage order, if the schedule has weight gradients and
/// no OPTIMIZER_STEP of its own.
Schedule add_optimizer_steps(Schedule schedule);

/// Adds the REDUCE_GRAD that sums the gradients of copies (stages of one model part) between the last weight gradient
/// and the OPTIMIZER_STEP of each such stage. All ranks list them by ascending model part, so that no two ranks wait
/// for each other. Copies whose gradients travel (schedules/dependencies/weight_messages.h) have sums already. The
/// schedule must have its OPTIMIZER_STEPs. Throws ScheduleError if stages with copies are asynchronous.
Schedule add_copy_reductions(Schedule schedule);

/// Adds the collectives of data parallelism. The schedule must have its OPTIMIZER_STEPs.
///   ZeRO 0, 1: REDUCE_GRAD(s) right behind the last weight gradient of s before each OPTIMIZER_STEP(s);
///   ZeRO 1, 2: UNSHARD(s) behind OPTIMIZER_STEP(s), the all-gather of the updated parameters;
///   ZeRO 2:    REDUCE_GRAD(s) behind every weight gradient of s, since no rank keeps a whole gradient;
///   ZeRO 3:    the actions of add_sharding.
/// With `buckets` (ZeRO 0, 1), REDUCE_GRAD(s,0) to REDUCE_GRAD(s,buckets[s]-1) stand right ahead of that last weight
/// gradient instead, and start inside it (schedules/dependencies/inner_reductions.h); they stand behind it where it is
/// one of an overlapped pair. One entry serves every stage; no entry means one bucket, behind. Stages with copies have
/// their REDUCE_GRAD already; under ZeRO 2 and 3 they have one for each gradient instead, over copies and replicas in
/// one. Throws ScheduleError if `zero` is not 0..3, if it is 2 or 3 and copies cannot meet so
/// (schedules/dependencies/like_copies.h) or there are buckets, or if a stage has not 1 to 32767 buckets.
Schedule add_data_parallel(Schedule schedule, int zero, const Sharding& sharding = {},
                           const std::vector<int>& buckets = {});

/// Says where a receive is issued: one compute action ahead of its consumer (kEarly), so that a transfer may run beside
/// that action even if sends wait for their receives, or right before its consumer (kLate).
enum class Receives : std::uint8_t { kEarly, kLate };

/// Adds the messages between stages on different ranks: SEND right behind its producer, RECV as `receives` says. On
/// each channel receives stand in the order of the sends. Because of that, and because neither holds the rank, no
/// message can close a cycle that the compute order does not have: a schedule that runs without messages runs under
/// buffered and under rendezvous sends.
Schedule add_messages(const Schedule& schedule, Receives receives = Receives::kEarly);

}}  // namespace plumb::schedules
