#pragma once
// Sharded parameters (ZeRO 3, FSDP): gathered ahead of their use, dropped behind it.

#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct Sharding {
  /// Stages of a rank that may stand gathered between their uses (but never fewer than an action or pair needs). 0:
  /// each action gathers for itself; 1: once for a run of consecutive actions of a stage, as breadth-first schedules
  /// are made for (Lamy-Poirier 2022); 3: what PyTorch's lowering allows.
  int gathered_stages = 0;
  bool prefetch = false;  ///< UNSHARD one run ahead, so that it runs beside that; one more stage stands gathered then
};

/// Adds UNSHARD(s) ahead of the uses of a stage (F, R, B, I, W), RESHARD(s) behind the last use before it has to make
/// room for another or before its OPTIMIZER_STEP, and behind that REDUCE_GRAD(s) if weight gradients came in between:
/// whole gradients exist as long as whole parameters. Which stage has to go is the choice of Belady (1966): the one
/// that is needed last. With `prefetch`, a stage that would be gathered again as soon as it is dropped stays. Throws
/// ScheduleError if gathered_stages is negative, or is 0 and prefetch is asked for.
Schedule add_sharding(Schedule schedule, const Sharding& sharding);

}}  // namespace plumb::schedules
