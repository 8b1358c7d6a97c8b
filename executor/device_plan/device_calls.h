#pragma once
// From a schedule to the calls that a device makes: on which stream each is, behind which others, in which order the
// host enqueues them.

#include <span>
#include <vector>

#include "executor/device_plan/device_program.h"
#include "executor/device_plan/joint_calls.h"
#include "executor/nccl/message_pairs.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

struct DeviceCalls {
  /// In the order of their starts by the cost table, were the arena unlimited. Waits: all that the schedule's rules ask
  /// for (schedules/dependencies/dependencies.h) beyond the stream's own order. The copy of a message is the sender's call: a RECV
  /// has none, nor has a RESHARD.
  std::vector<DeviceCall> calls;
  std::vector<SimTime> starts;          ///< [call]
  std::vector<SimTime> ends;            ///< [call]
  std::vector<std::int32_t> of_action;  ///< [action id] its call; -1 where there is none
};

/// `lowered` breaks no rule of schedules/rules/validate.h, and `costs` has all of its stages.
/// `agrees`: what the optimizer does depends on all gradients (clipping, loss scaling), so that each OPTIMIZER_STEP
/// waits for the last gradients of every rank, and their REDUCE_GRADs; then no rank computes behind its first one.
/// `pairs`: messages that start together, one call right behind the other.
DeviceCalls device_calls(const Schedule& lowered, const CostTable& costs, bool agrees = false,
                         JointPasses passes = JointPasses::kNone, std::span<const MessagePair> pairs = {});

/// [rank] id of the compute action behind which its gradients are complete: the last before its first OPTIMIZER_STEP;
/// -1 where there is none.
std::vector<std::int32_t> last_gradient_actions(const Schedule& lowered);

}}  // namespace plumb::executor
