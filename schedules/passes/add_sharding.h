#pragma once
// Sharded parameters (ZeRO 3, FSDP) are gathered ahead of their use and dropped behind it.

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct Sharding {
  /// Stages of a rank that may stand gathered between their uses (but never fewer than an action or pair needs). With
  /// 0, each action gathers for itself. With 1, a run of consecutive actions of a stage gathers once, as breadth-first
  /// schedules are made for (Lamy-Poirier 2022). PyTorch's lowering allows 3.
  int gathered_stages = 0;
  bool prefetch = false;  ///< UNSHARD one run ahead, beside which it can run; one more stage then stands gathered
};

/// Adds UNSHARD(s) ahead of the uses of a stage (F, R, B, I, W), and RESHARD(s) behind the last use before the stage
/// has to make room for another or before its OPTIMIZER_STEP. Adds REDUCE_GRAD(s) behind that RESHARD if weight
/// gradients came in between: whole gradients exist as long as whole parameters. The stage that is needed last has to
/// go, the choice of Belady (1966). With `prefetch`, a stage that would be gathered again as soon as it is dropped
/// stays. Throws ScheduleError if gathered_stages is negative, or is 0 and prefetch is asked for.
Schedule add_sharding(Schedule schedule, const Sharding& sharding);

}}  // namespace plumb::schedules
