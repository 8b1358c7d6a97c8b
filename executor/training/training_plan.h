#pragma once
// What follows from a RunSpec before its ranks start, the same on each of them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/replay_plan.h"
#include "executor/run_spec.h"
#include "executor/weight_versions.h"

namespace plumb { inline namespace executor {

/// Which optimizer step of a replay each micro-batch belongs to.
struct Batches {
  std::vector<int> batch_of;        ///< [micro-batch]
  std::vector<std::int64_t> sizes;  ///< [batch] micro-batches of one replica
};

struct TrainingPlan {
  ReplayPlan replay;
  WeightVersions versions;
  Batches batches;
  std::vector<int> first_layer;                 ///< [stage] of the model
  std::vector<std::vector<int>> bucket_layers;  ///< [stage][bucket]
  int first_step = 0;                           ///< what `resume` has behind it
};

/// Throws what run() throws before its ranks start.
TrainingPlan plan_training(const RunSpec& spec);

/// Tokens over which losses and gradients of a batch are means, of all replicas.
std::int64_t batch_tokens(const RunSpec& spec, const TrainingPlan& plan, std::size_t batch);

/// Of everything that decides what the ranks compute and send to each other: ranks that train together must have the
/// same. Layers enter by their kinds and parameters, and by `source`.
std::uint64_t fingerprint(const RunSpec& spec);

}}  // namespace plumb::executor
