#pragma once
// The results of a run: of one rank, and of all ranks together.

#include <array>
#include <cstdint>
#include <vector>

#include "executor/parameters/model_values.h"
#include "executor/parameters/parameter_bytes.h"
#include "executor/spec/run_spec.h"
#include "executor/training/training_plan.h"
#include "executor/transport/collective.h"
#include "schedules/time.h"
#include "traces/timeline.h"

namespace plumb { inline namespace executor {

struct RunResult {
  int first_step = 0;          ///< first step of this run: the steps that the checkpoint of `resume` had done
  std::vector<double> losses;  ///< [optimizer step] mean over the tokens of its batch, before the update
  /// [optimizer step] Load-balancing loss of mixtures of experts, which gradients include; 0 without.
  std::vector<double> balance_losses;
  std::vector<Seconds> step_seconds;  ///< [replay] time from the common start to the last rank's end
  std::vector<Timeline> timelines;    ///< [replay] measured, of the first tensor and context rank of replica 0
  /// [pipeline rank] Bytes of the same ranks' tensors, at the peak of the whole run.
  std::vector<std::int64_t> peak_memory_bytes;
  std::vector<std::int64_t> peak_host_bytes;    ///< [pipeline rank] bytes of their offloaded tensors, at the peak
  std::vector<ParameterBytes> parameter_bytes;  ///< [world rank] held between steps, by kind
  /// [world rank][CollectiveKind] Bytes of the buffers of its tensor group's collectives in the whole run; zeros in a
  /// group of one.
  std::vector<std::array<std::int64_t, kCollectiveKindCount>> tensor_group_bytes;
  std::vector<std::int64_t> allocations;  ///< [world rank] allocations of tensor memory in the whole run
  std::vector<double> loss_scales;        ///< [replay] loss scale that it began with; 1 except in fp16
  int skipped_steps = 0;                  ///< steps that were skipped because gradients overflowed
  std::vector<ModelValues> gradients;     ///< [optimizer step] gradients as they reach the optimizer
  ModelValues weights;                    ///< weights after the last step
};

struct MicrobatchLoss {
  int microbatch = 0;
  double sum = 0;  ///< sum over the micro-batch's tokens
};

/// The results of one world rank.
struct RankOutcome {
  std::vector<RankTimeline> timelines;              ///< [replay] times count from the common start
  std::vector<SimTime> ends;                        ///< [replay] time from the common start until the rank was done
  std::vector<std::vector<MicrobatchLoss>> losses;  ///< [replay] losses that the rank computed
  /// [replay] Load-balancing losses, one for each stage with experts and micro-batch.
  std::vector<std::vector<MicrobatchLoss>> balance_losses;
  std::vector<double> loss_scales;  ///< [replay]
  std::int64_t skipped_steps = 0;
  std::int64_t peak_memory_bytes = 0;
  std::int64_t peak_host_bytes = 0;
  std::int64_t allocations = 0;
  ParameterBytes parameter_bytes;
  std::array<std::int64_t, kCollectiveKindCount> tensor_group_bytes{};  ///< [CollectiveKind]
};

/// Returns true for tensor rank 0 of context rank 0 of replica 0, whose timeline and memory stand for its pipeline
/// rank.
bool stands_for_its_pipeline_rank(const GridCoordinates& place);

/// Returns a measured timeline of the schedule that has no spans yet.
Timeline empty_timeline(const Schedule& schedule);

/// Joins the outcomes of all ranks; gradients and weights are not in them. Losses are added by replica, context rank
/// and micro-batch. ranks: [world rank]
RunResult run_result(const RunSpec& spec, const TrainingPlan& plan, std::vector<RankOutcome> ranks);

}}  // namespace plumb::executor
