#pragma once
// One launch order for all ranks: the schedule is played once, with round durations, and the messages and collectives
// are numbered as both ends, or all members, have come to them. Every host makes its calls in the order of these
// numbers.
//
// Then nothing deadlocks even if a device has room for one waiting kernel: of what is not done yet, the call with the
// lowest number has everything behind it on each of its ranks, so that all of them start it. (Lists in the schedule's
// own order do not have that: a receive that queues behind another on its stream can keep back the send behind it.)

#include <vector>

#include "executor/nccl/nccl_order.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

/// Reorders the calls of all ranks, and their waits with them. Groups stay together. An order in which the ranks
/// disagree stays as it is; calls that nothing can bring about keep their order behind the others.
void launch_in_one_order(NcclOrder& order, const Schedule& schedule, const RankGrid& grid);

}}  // namespace plumb::executor
