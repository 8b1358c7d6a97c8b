#pragma once
// Lowering turns the compute order that a generator makes into all that a rank does in a step. The passes
// (schedules/passes) run in the order in which they are declared there.
//
//   Schedule lowered = lower(make_schedule("1f1b", {.ranks = 4, .microbatches = 8}));

#include <optional>
#include <vector>

#include "schedules/passes/passes.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

struct DataParallel {
  /// The ranks have replicas: gradients are reduced and parameters gathered. Copies of stages share state without this.
  bool enabled = false;
  /// ZeRO stage (Rajbhandari et al. 2020): 0 shards nothing, 1 the optimizer, 2 also gradients, 3 also parameters.
  int zero = 0;
  Sharding sharding;  ///< for ZeRO 3: how long parameters stand gathered
  /// [stage] For ZeRO 0 and 1: gradient buckets reduced inside the last backward (add_data_parallel).
  std::vector<int> buckets;
};

struct LoweringOptions {
  Checkpoint checkpoint = Checkpoint::kNever;  ///< the micro-batches that get an R of their own
  std::optional<int> offload;  ///< activations that a rank keeps; the others wait in host memory (add_offload)
  /// Stages of a rank whose activations all wait in host memory, those that live longest (add_lifespan_offload).
  std::optional<int> offload_stages;
  DataParallel data;
  Receives receives = Receives::kEarly;  ///< the place where a receive is issued (add_messages)
};

/// Returns the schedule with its recomputation, offloading (if asked for), optimizer steps, the sums over copies of
/// stages, data-parallel collectives (if enabled) and messages. Throws ScheduleError if it has messages already, or
/// where a pass does (schedules/passes/passes.h): there is no such ZeRO stage, copies of stages or weights that travel do
/// not go with it, a number is negative, it moves activations already.
Schedule lower(Schedule schedule, const LoweringOptions& options = {});

}}  // namespace plumb::schedules
