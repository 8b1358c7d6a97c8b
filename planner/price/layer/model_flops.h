#pragma once
// The FLOPs with which a training step is credited by convention, whatever the layout really computes (no
// recomputation).
//
// FLOPs of a token = 6 N + 12 L a d s (Chowdhery et al. 2022, appendix B; Narayanan et al. 2021, eq. 3 is the same
// sum). N are the parameters that take part in a product: all but the token and position tables (a tied table counts
// once, as the head), and of routed experts those that a token passes. L layers have a heads of size d over sequences
// of s tokens. The causal half is not deducted; a sliding window counts as s = min(s, window). Mamba-2's
// recurrence counts 12 L P H N instead of 12 L a d s: its H heads write and read states [P, N]. A layer graph counts
// three times the products of its forward: the forward, dgrad and wgrad.

#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// Returns the FLOPs of one optimizer step over the whole batch.
double model_flops_per_step(const ModelSpec& model, const TrainingSpec& training);

/// The FLOPs that a source counts if it prints its throughput in FLOP/s only.
enum class FlopsCount {
  kModel,   ///< the count of model_flops_per_step()
  kCausal,  ///< kModel with the causal half of attention deducted
  /// kModel and the recomputation of the layers (Narayanan et al. 2021, eq. 3; Korthikanti et al. 2022, appendix A).
  kExecuted,
};

/// Returns the FLOPs of one optimizer step by that count. Where recomputation counts, `recompute` adds the forward of
/// the layers or of attention's core once more. A layer graph is counted by model_flops_per_step(), whatever `count`.
double counted_flops_per_step(const ModelSpec& model, const TrainingSpec& training, Recompute recompute,
                              FlopsCount count);

/// Returns flops_per_step / (step time * devices * data-sheet peak of the training's precision): a ratio, not per cent.
double flops_utilization(double flops_per_step, const TrainingSpec& training, const ClusterSpec& cluster,
                         Seconds step_time);

}}  // namespace plumb::planner
