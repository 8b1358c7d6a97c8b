#pragma once
// The lowering of PyTorch's torch.distributed.pipelining (2.14), so that its compute-comms files can be made, checked
// and simulated here: parameters are gathered a few stages ahead (FSDP), gradients are reduced behind the last
// backward, and sends and receives stand in the order in which PyTorch's own dry run meets them.

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct TorchLowering {
  /// Puts a receive right ahead of its consumer (defer_pp_recv) instead of where it was met.
  bool deferred_receives = false;
  int unsharded_stages = 3;  ///< stages of a rank whose parameters stand gathered at once
};

/// Lowers in three steps. 1. UNSHARD of the next stages that the rank will use, and RESHARD of those that it will not.
/// 2. REDUCE_GRAD behind a stage's last weight gradient. 3. Ranks take turns, one action each: a result for another
/// rank is sent right behind the action, and its receive goes to the end of that rank's list as it stands by then.
/// Throws ScheduleError if the schedule has messages, collectives or optimizer steps already, or does not run to its
/// end.
Schedule lower_as_torch(const Schedule& schedule, const TorchLowering& options = {});

}}  // namespace plumb::schedules
