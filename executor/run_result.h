#pragma once
// What comes of a run: of one rank, and of all of them.

#include <array>
#include <cstdint>
#include <vector>

#include "executor/run_spec.h"
#include "executor/training/parameter_bytes.h"
#include "executor/training/training_plan.h"
#include "executor/transport/collective.h"
#include "schedules/time.h"
#include "traces/timeline.h"

namespace plumb { inline namespace executor {

/// A value for each parameter of the model: [layer of the model][parameter, as layer_parameters() lists them][element].
using ModelValues = std::vector<std::vector<std::vector<float>>>;

struct RunResult {
  int first_step = 0;                  ///< that this run did: what `resume` had behind it
  std::vector<double> losses;          ///< [optimizer step] mean over the tokens of its batch, before the update
  std::vector<double> balance_losses;  ///< [optimizer step] of mixtures of experts, which gradients include; 0 without
  std::vector<Seconds> step_seconds;   ///< [replay] from the common start to the last rank's end
  std::vector<Timeline> timelines;     ///< [replay] measured, of the first tensor and context rank of replica 0
  std::vector<std::int64_t> peak_memory_bytes;  ///< [pipeline rank] likewise, tensors in the whole run
  std::vector<std::int64_t> peak_host_bytes;    ///< [pipeline rank] likewise, what was offloaded to the host's memory
  std::vector<ParameterBytes> parameter_bytes;  ///< [world rank] held between steps, by what they are
  /// [world rank][CollectiveOp] buffers of its tensor group's collectives, in the whole run; zeros in a group of one.
  std::vector<std::array<std::int64_t, kCollectiveOpCount>> tensor_group_bytes;
  std::vector<std::int64_t> allocations;  ///< [world rank] of tensor memory, in the whole run
  std::vector<double> loss_scales;        ///< [replay] that it began with; 1 but in fp16
  int skipped_steps = 0;                  ///< whose gradients overflowed
  std::vector<ModelValues> gradients;     ///< [optimizer step] as they reach the optimizer
  ModelValues weights;                    ///< after the last step
};

struct MicrobatchLoss {
  int microbatch = 0;
  double sum = 0;  ///< over its tokens
};

/// Of one world rank.
struct RankOutcome {
  std::vector<RankTimeline> timelines;                      ///< [replay] from the common start
  std::vector<SimTime> ends;                                ///< [replay] when the rank was done, from the common start
  std::vector<std::vector<MicrobatchLoss>> losses;          ///< [replay] those that the rank computed
  std::vector<std::vector<MicrobatchLoss>> balance_losses;  ///< [replay] likewise, by stage with experts
  std::vector<double> loss_scales;                          ///< [replay]
  std::int64_t skipped_steps = 0;
  std::int64_t peak_memory_bytes = 0;
  std::int64_t peak_host_bytes = 0;
  std::int64_t allocations = 0;
  ParameterBytes parameter_bytes;
  std::array<std::int64_t, kCollectiveOpCount> tensor_group_bytes{};  ///< [CollectiveOp]
};

/// Tensor rank 0 of context rank 0 of replica 0, whose timeline and memory stand for its pipeline rank.
bool stands_for_its_pipeline_rank(const GridCoordinates& place);

/// A measured timeline of the schedule without spans.
Timeline empty_timeline(const Schedule& schedule);

/// Zeros in the shape of the model's parameters. first_layer: [stage] of the model.
ModelValues room_for_values(const RunSpec& spec, const std::vector<int>& first_layer);

/// All ranks' outcomes together, without gradients and weights. Losses are added by replica, context rank and
/// micro-batch. [world rank]
RunResult run_result(const RunSpec& spec, const TrainingPlan& plan, std::vector<RankOutcome> ranks);

}}  // namespace plumb::executor
