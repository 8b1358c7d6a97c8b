#pragma once
// Turns a schedule into the calls that a device makes: the stream of each, the calls that it waits for, and the order
// in which the host enqueues them.

#include <span>
#include <vector>

#include "executor/groups/message_pairs.h"
#include "executor/program/device/device_program.h"
#include "executor/program/device/joint_calls.h"
#include "schedules/cost_table.h"
#include "schedules/schedule.h"
#include "schedules/time.h"

namespace plumb { inline namespace executor {

struct DeviceCalls {
  /// Calls in the order of their starts by the cost table, if the arena were unlimited. Each has all waits that the
  /// schedule's rules ask for (schedules/dependencies/dependencies.h) beyond the order of its stream. The copy of a
  /// message is the sender's call: a RECV has no call, nor has a RESHARD.
  std::vector<DeviceCall> calls;
  std::vector<SimTime> starts;          ///< [call]
  std::vector<SimTime> ends;            ///< [call]
  std::vector<std::int32_t> of_action;  ///< [action id] its call; -1 if it has none
};

/// Returns the calls. `lowered` breaks no rule of schedules/rules/validate.h, and `costs` has all of its stages. If
/// `agrees`, the optimizer's work depends on all gradients (clipping, loss scaling), so each OPTIMIZER_STEP waits for
/// the last gradients of every rank and their REDUCE_GRADs; then no rank computes behind its first OPTIMIZER_STEP.
/// `pairs` are messages that start together; their calls follow one another directly. Throws ScheduleError if copies of
/// a stage gather their weights in different orders.
DeviceCalls device_calls(const Schedule& lowered, const CostTable& costs, bool agrees = false,
                         JointPasses passes = JointPasses::kNone, std::span<const MessagePair> pairs = {});

/// Returns [rank] the id of the compute action behind which the rank's gradients are complete, which is the last one
/// before its first OPTIMIZER_STEP; -1 if there is none.
std::vector<std::int32_t> last_gradient_actions(const Schedule& lowered);

}}  // namespace plumb::executor
