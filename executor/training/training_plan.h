#pragma once
// The plan that follows from a RunSpec before its ranks start. It is the same on each of them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/program/replay_plan.h"
#include "executor/program/weight_versions.h"
#include "executor/spec/run_spec.h"

namespace plumb { inline namespace executor {

/// The optimizer step of a replay to which each micro-batch belongs.
struct Batches {
  std::vector<int> batch_of;        ///< [micro-batch]
  std::vector<std::int64_t> sizes;  ///< [batch] micro-batches of one replica
};

struct TrainingPlan {
  ReplayPlan replay;
  WeightVersions versions;
  Batches batches;
  std::vector<int> first_layer;                 ///< [stage] number of its first layer in the model
  std::vector<std::vector<int>> bucket_layers;  ///< [stage][bucket] layers of a bucket
  int first_step = 0;                           ///< steps that the checkpoint of `resume` had done
};

/// Returns the plan. Throws what run() throws before its ranks start.
TrainingPlan plan_training(const RunSpec& spec);

/// Returns the tokens, of all replicas, over which losses and gradients of a batch are means.
std::int64_t batch_tokens(const RunSpec& spec, const TrainingPlan& plan, std::size_t batch);

/// Returns a fingerprint of everything that decides the ranks' computations and messages; ranks that train together
/// must have the same. Layers enter by their kinds and parameters, and by `source`.
std::uint64_t fingerprint(const RunSpec& spec);

}}  // namespace plumb::executor
