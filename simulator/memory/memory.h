#pragma once
// How many bytes each rank holds at each moment of a simulated step (docs/design.md, rules 5 and 6), from what the
// cost table says of each stage. Collectives work in place; what is sent leaves from where it was made.

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
  std::vector<MemorySample> samples;  ///< ascending, one where the bytes change; empty unless asked for
  MemorySamplesByKind by_kind;        ///< the same for each kind that is ever held; their sum is `samples`
  std::int64_t peak_bytes = 0;
  int peak_activations = 0;  ///< (stage, micro-batch, slice)s from the start of F to the end of B or W, at most at once
};

/// [rank]. Held are
///   always               parameters, gradients, optimizer state of the rank's stages; weight_versions.h for further
///   versions; F .. its backward    forward_bytes, up to the end of W or B (of F itself, on a stage without any
///   backward); R .. that end        recompute_bytes; from the start of I or B where the list has no R; to the end of I
///   released_at_input_grad_bytes of the two above, where the backward is split; while it runs        the workspace of
///   F, R and of B, I, W; UNSHARD .. RESHARD   unsharded_bytes, from the first UNSHARD of the stage; OFFLOAD .. RELOAD
///   all of the micro-batch but what OFFLOAD took: forward_bytes, from the end of the one to the start
///                        of the other. EVICT and LOAD likewise, and the rank p-1-r holds them meanwhile (BPipe).
/// RECV .. its consumer's start   the bytes of the message: from then on they are the consumer's input.
/// At one moment releases come before acquisitions.
std::vector<RankMemory> memory_by_rank(const Schedule& schedule, const ActionTable& table, const CostTable& costs,
                                       const ActionTimes& times, bool keep_samples);

/// True if no rank's bytes change but at the start and the end of its own compute actions, behind which its receives
/// are issued: no activations move, no parameters are gathered, no versions are kept. Then one pass over the steps
/// gives the peaks.
bool holds_in_issue_order(const Schedule& schedule, const CompiledSchedule& compiled, const CostTable& costs);

/// What a step of one kind takes on its rank at its start and gives back at its end.
struct KindMemory {
  bool changes = false;
  int rank = 0;
  SimTime duration{0};
  std::int64_t taken_bytes = 0;
  std::int64_t returned_bytes = 0;
  std::int64_t consumed_bytes = 0;  ///< of messages, at its start
  int taken_activations = 0;
  int returned_activations = 0;
};

/// [kind of step], for a schedule that holds in issue order.
std::vector<KindMemory> memory_by_kind(const Schedule& schedule, const CompiledSchedule& compiled,
                                       const CostTable& costs, const std::vector<StepCost>& step_costs);

/// [rank] the peaks that memory_by_rank gives, without samples. `schedule` must hold in issue order.
std::vector<RankMemory> peaks_by_rank(const Schedule& schedule, const CompiledSchedule& compiled,
                                      const CostTable& costs, const std::vector<StepCost>& step_costs,
                                      const StepTimes& times);

}}  // namespace plumb::simulator
