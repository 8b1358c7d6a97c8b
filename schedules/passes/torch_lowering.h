#pragma once
// The lowering of PyTorch's torch.distributed.pipelining (2.14), so that its compute-comms files can be made, checked
// and simulated here: parameters gathered a few stages ahead (FSDP), gradients reduced behind the last backward, sends
// and receives in the order in which PyTorch's own dry run meets them.

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct TorchLowering {
  bool deferred_receives =
      false;                 ///< a receive right ahead of its consumer (defer_pp_recv) instead of where it was met
  int unsharded_stages = 3;  ///< stages of a rank whose parameters stand gathered at once
};

/// 1. UNSHARD of the next stages that the rank will use, RESHARD of those it will not; 2. REDUCE_GRAD behind a stage's
/// last weight gradient; 3. ranks take turns, an action each: what it makes for another rank is sent behind it, and its
/// receive goes to the end of what that rank's list has become by then. Throws ScheduleError if the schedule has
/// messages, collectives or optimizer steps already, or does not run to its end.
Schedule lower_as_torch(const Schedule& schedule, const TorchLowering& options = {});

}}  // namespace plumb::schedules
