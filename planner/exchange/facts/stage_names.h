#pragma once
// The layers of each pipeline stage as torchtitan spells them (as Megatron does: planner/spec/megatron_layout.h).
//
//   torchtitan_modules({1, 2})      ->  [["tok_embeddings", "layers.0"], ["layers.1", "layers.2", "norm", "output"]]

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace plumb { inline namespace planner {

/// Returns torchtitan's module_fqns_per_model_part.
/// Source: pytorch/torchtitan torchtitan/distributed/pipeline_parallel.py (2025).
nlohmann::json torchtitan_modules(const std::vector<int>& split);

/// Returns [model part] transformer layers of such a list. Throws SpecError "PLACE: ..." if the layers of the parts do
/// not follow each other.
std::vector<int> split_of_torchtitan(const nlohmann::json& modules, const std::string& place);

}}  // namespace plumb::planner
