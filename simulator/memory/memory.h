#pragma once
// Counts the bytes that each rank holds at each moment of a simulated step (docs/design.md, rules 5 and 6), from the
// memory that the cost table gives each stage. Collectives work in place; a message leaves from where it was made.

#include <cstdint>
#include <vector>

#include "schedules/cost_table.h"
#include "schedules/dependencies/action_table.h"
#include "schedules/schedule.h"
#include "simulator/compile/compiled_schedule.h"
#include "simulator/engine/engine.h"
#include "traces/timeline.h"

namespace plumb { inline namespace simulator {

struct RankMemory {
  std::vector<MemorySample> samples;  ///< ascending in time, one where the bytes change; empty unless asked for
  MemorySamplesByKind by_kind;        ///< samples of each kind that is ever held; their sum is `samples`
  std::int64_t peak_bytes = 0;
  /// The most (stage, micro-batch, slice)s held at once, from the start of F to the end of B or W.
  int peak_activations = 0;
};

/// Returns [rank] its memory. Each rank holds
///
///   always                     parameters, gradients and optimizer state of its stages, and the further
///                              versions of weight_versions.h
///   from F to its backward     forward_bytes, up to the end of W or B (of F itself on a stage without backward)
///   from R to its backward     recompute_bytes, up to the same end, and from the start of I or B where the list has
///                              no R
///   while F, R, B, I or W run  their workspace
///   from UNSHARD to RESHARD    unsharded_bytes, from the first UNSHARD of the stage
///   while weights travel       parameter_bytes for each RECV_WEIGHTS, to RESHARD; gradient_bytes for each RECV_WGRAD
///                              and for a stage's own, to SEND_WGRAD; nothing always but where stages_with_state says so
///   from RECV to its consumer  the bytes of the message, up to the consumer's start: from then on they are its input
///
/// If the backward is split, the end of I frees released_at_input_grad_bytes of forward_bytes and recompute_bytes,
/// and the end of W the rest. forward_bytes are away from the end of OFFLOAD to the start of RELOAD, and from the end
/// of EVICT to the start of LOAD; rank p-1-r holds evicted ones from the start of EVICT to the end of LOAD (BPipe). At
/// one moment releases come before acquisitions.
std::vector<RankMemory> memory_by_rank(const Schedule& schedule, const ActionTable& table, const CostTable& costs,
                                       const ActionTimes& times, bool keep_samples);

/// True if no rank's bytes change but at the start and the end of its own compute actions, behind which its receives
/// are issued: no activations move, no parameters are gathered, no versions are kept. One pass over the steps then
/// gives the peaks.
bool holds_in_issue_order(const Schedule& schedule, const CompiledSchedule& compiled, const CostTable& costs);

/// The memory that a step of one kind takes on its rank at its start and gives back at its end.
struct KindMemory {
  bool changes = false;
  int rank = 0;
  SimTime duration{0};
  std::int64_t taken_bytes = 0;
  std::int64_t returned_bytes = 0;
  std::int64_t consumed_bytes = 0;  ///< bytes of messages that it consumes at its start
  int taken_activations = 0;
  int returned_activations = 0;
};

/// Returns [kind of step] its memory. The schedule must hold in issue order.
std::vector<KindMemory> memory_by_kind(const Schedule& schedule, const CompiledSchedule& compiled,
                                       const CostTable& costs, const std::vector<StepCost>& step_costs);

/// Returns [rank] the peaks that memory_by_rank gives, without samples. `schedule` must hold in issue order.
std::vector<RankMemory> peaks_by_rank(const Schedule& schedule, const CompiledSchedule& compiled,
                                      const CostTable& costs, const std::vector<StepCost>& step_costs,
                                      const StepTimes& times);

}}  // namespace plumb::simulator
