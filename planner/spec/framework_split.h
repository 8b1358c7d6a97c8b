#pragma once
// The split of a model's layers as frameworks cut it, without a look at what layers cost.
//
//   framework_split(StageSplit::kEven, 126, 16)         ->  {7, 8, 8, ..., 8, 7}
//   framework_split(StageSplit::kEndsAsLayers, 32, 4)   ->  {8, 9, 8, 7}

#include <optional>
#include <vector>

#include "planner/spec/stack_spec.h"

namespace plumb { inline namespace planner {

/// Returns [model part] transformer layers; nothing where the rule has no such split: the user then names one, or Plumb
/// balances.
///
/// kEven: as many on each. Where that leaves a remainder, the embedding and the head count as a layer each, or the head
/// alone. Source: Megatron-Core, --account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split.
/// kEndsAsLayers: the embedding and the head count as a layer each, and the first parts take what is left over. Source:
/// pytorch/torchtitan torchtitan/distributed/pipeline_parallel.py (2025), generate_llm_fqn_per_model_part; DeepSpeed's
/// partition method type:transformer|embedding is the same where it divides evenly.
std::optional<std::vector<int>> framework_split(StageSplit rule, int transformer_layers, int parts);

}}  // namespace plumb::planner
