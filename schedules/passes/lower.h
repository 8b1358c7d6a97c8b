#pragma once
// Lowering: from the compute order that a generator makes to everything a rank does in a step. The passes
// (schedules/passes) run in the order in which they are declared there.
//
//   Schedule lowered = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 8}));

#include <optional>
#include <vector>

#include "schedules/passes/passes.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct DataParallel {
  bool enabled = false;  ///< the ranks have replicas: gradients are reduced, parameters gathered; copies need no more
  int zero =
      0;  ///< ZeRO stage (Rajbhandari et al. 2020): 0 nothing sharded, 1 optimizer, 2 and gradients, 3 and parameters
  Sharding sharding;  ///< ZeRO 3: how long parameters stand gathered
  std::vector<int>
      buckets;  ///< [stage] ZeRO 0, 1: gradient buckets reduced inside the last backward (add_data_parallel)
};

struct LoweringOptions {
  Checkpoint checkpoint = Checkpoint::kNever;  ///< which micro-batches get an R of their own
  std::optional<int> offload;  ///< activations that a rank keeps, the others wait in host memory (add_offload)
  DataParallel data;
  Receives receives = Receives::kEarly;  ///< where a receive is issued (add_messages)
};

/// The schedule with its recomputation, offloading (if asked for), optimizer steps, the sums over copies of stages,
/// data-parallel collectives (if enabled) and messages. Throws ScheduleError if it has messages already, or where a
/// pass does (schedules/passes/passes.h): there is no such ZeRO stage, copies of stages do not go with it, a number is
/// negative, it moves activations already.
Schedule lower(Schedule schedule, const LoweringOptions& options = {});

}}  // namespace plumb::schedules
