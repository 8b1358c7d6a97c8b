#pragma once
// The layers of each pipeline stage as trainers spell them.
//
//   megatron_layout({7, 8, 8, 7})   ->  "Et*7|t*8|t*8|t*7L"
//   torchtitan_modules({1, 2})      ->  [["tok_embeddings", "layers.0"], ["layers.1", "layers.2", "norm", "output"]]

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace plumb { inline namespace planner {

/// Returns the string of Megatron-Core's --pipeline-model-parallel-layout: E is the embedding, t a layer, L the loss.
/// Source: NVIDIA/Megatron-LM megatron/core/transformer/pipeline_parallel_layer_layout.py (2025).
std::string megatron_layout(const std::vector<int>& split);

/// Returns [model part] transformer layers of such a string, in which "(t|)*3" and "t*3" repeat and commas mean nothing.
/// Throws SpecError "PLACE: ..." for a string that is none, or that has a layer of multi-token prediction.
std::vector<int> split_of_megatron(std::string_view layout, const std::string& place);

/// Returns torchtitan's module_fqns_per_model_part.
/// Source: pytorch/torchtitan torchtitan/distributed/pipeline_parallel.py (2025).
nlohmann::json torchtitan_modules(const std::vector<int>& split);

/// Returns [model part] transformer layers of such a list. Throws SpecError "PLACE: ..." if the layers of the parts do
/// not follow each other.
std::vector<int> split_of_torchtitan(const nlohmann::json& modules, const std::string& place);

}}  // namespace plumb::planner
