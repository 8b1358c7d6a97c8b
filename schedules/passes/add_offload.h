#pragma once
// Offloading lets activations that are not needed soon wait in host memory.
//
//   0F0 0F1 0F2 0B0 0B1 0B2, 1 kept  ->  0F0 0F1 0OFFLOAD1 0F2 0OFFLOAD2 0RELOAD1 0B0 0RELOAD2 0B1 0B2

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// Keeps on each rank the `kept` activations (of a stage, micro-batch and slice) that are needed soonest, and offloads
/// the others. Whenever more are there as a compute action begins, the one whose backward (R, I or B) comes last gets
/// an OFFLOAD ahead of that action: the choice of Belady (1966), which moves as few as may be. Its RELOAD stands one
/// compute action ahead of that backward, so that it can run beside that action. An activation that is needed within
/// two compute actions stays, and so does one that has come back or whose backward has begun. Thus, if moving costs
/// nothing, a rank holds at most `kept` + 1 activations (a forward makes one more), or 3 where `kept` is below 2; with
/// a split backward it also holds those that wait for their W. Overlapped pairs stay together and count as one action;
/// the order of the compute actions stays. Runs behind add_recompute and ahead of add_messages. Throws ScheduleError if
/// `kept` is negative, or if the schedule moves activations already.
Schedule add_offload(Schedule schedule, int kept);

}}  // namespace plumb::schedules
