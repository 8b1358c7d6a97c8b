#pragma once
// The work that a training step is credited with, by convention, whatever the layout really computes (no
// recomputation).
//
// FLOPs of a token = 6 N + 12 L a d s (Chowdhery et al. 2022, appendix B; Narayanan et al. 2021, eq. 3 is the same
// sum): N are the parameters that take part in a product, that is all but the token and position tables (a tied table
// counts once, as the head), and of routed experts those that a token passes; L layers of a heads of size d over
// sequences of s tokens, the causal half not deducted, a sliding window counted as s = min(s, window).
// Of a layer graph three times the products of its forward: the forward, dgrad and wgrad.

#include "planner/spec/cluster_spec.h"
#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// FLOPs of one optimizer step over the whole batch.
double model_flops_per_step(const ModelSpec& model, const TrainingSpec& training);

/// What a source counts that prints its throughput in FLOP/s only.
enum class FlopsCount {
  kModel,     ///< as model_flops_per_step()
  kCausal,    ///< the same with the causal half of attention deducted
  kExecuted,  ///< kModel and what the layers recompute (Narayanan et al. 2021, eq. 3; Korthikanti et al. 2022, appendix
              ///< A)
};

/// FLOPs of one optimizer step by that count. `recompute` adds, where it is counted, the forward of the layers once
/// more or that of attention's core. A layer graph is counted as by model_flops_per_step(), whatever `count`.
double counted_flops_per_step(const ModelSpec& model, const TrainingSpec& training, Recompute recompute,
                              FlopsCount count);

/// flops_per_step / (step time * devices * data-sheet peak of the training's precision). A ratio, not per cent.
double flops_utilization(double flops_per_step, const TrainingSpec& training, const ClusterSpec& cluster,
                         Seconds step_time);

/// The same of model_flops_per_step.
double model_flops_utilization(const ModelSpec& model, const TrainingSpec& training, const ClusterSpec& cluster,
                               Seconds step_time);

}}  // namespace plumb::planner
