#pragma once
// The shape of a run, which follows from its RunSpec alone: its ranks, and the layers of each stage and bucket.

#include <vector>

#include "executor/spec/division/rank_grid.h"
#include "executor/spec/run_spec.h"

namespace plumb { inline namespace executor {

/// Returns the ranks of the run.
RankGrid rank_grid_of(const RunSpec& spec);

/// Returns the number of each stage's first layer in the model. [stage]
std::vector<int> first_layers(const RunSpec& spec);

/// Returns how many layers each gradient bucket has: RunSpec::bucket_layers, or as equal numbers as can be.
/// [stage][bucket]
std::vector<std::vector<int>> bucket_layers(const RunSpec& spec);

}}  // namespace plumb::executor
