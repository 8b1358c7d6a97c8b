#pragma once
// Lowering: from the compute order that a generator makes to everything a rank does in a step. The passes
// (schedules/passes) run in the order in which they are declared there.
//
//   Schedule lowered = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 8}));

#include "schedules/passes/passes.h"
#include "schedules/schedule.h"

namespace plumb {

struct DataParallel {
  bool enabled = false;  ///< the ranks have replicas: gradients are reduced, parameters gathered
  int zero =
      0;  ///< ZeRO stage (Rajbhandari et al. 2020): 0 nothing sharded, 1 optimizer, 2 and gradients, 3 and parameters
};

struct LoweringOptions {
  Checkpoint checkpoint = Checkpoint::kNever;  ///< which micro-batches get an R of their own
  DataParallel data;
};

/// The schedule with its recomputation, optimizer steps, the sums over copies of stages, data-parallel collectives (if
/// enabled) and messages. Throws ScheduleError if it has messages already, if there is no such ZeRO stage, or if copies
/// of stages do not go with it (schedules/passes/passes.h).
Schedule lower(Schedule schedule, const LoweringOptions& options = {});

}  // namespace plumb
