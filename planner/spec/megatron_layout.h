#pragma once
// A split as Megatron-Core's --pipeline-model-parallel-layout spells it.
//
//   split_of_megatron_layout("Et*3|(tt|)*29L")     ->  {3, 2, 2, ..., 2, 0}
//   megatron_layout({3, 2, 2, 2, 0})               ->  "Et*3|(tt|)*3L"
//
// E is the embedding, t a transformer layer, m a module of multi-token prediction, L the loss. A bar ends a stage, and
// commas say nothing. A letter or a bracket is repeated by "*N". Source: NVIDIA/Megatron-LM
// megatron/core/transformer/pipeline_parallel_layer_layout.py (2025).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace planner {

/// Returns [model part] transformer layers. Throws SpecError, naming the remedy, unless the text is such a layout with E
/// in front and L at its end; for modules of multi-token prediction that stand elsewhere than before L; and for more
/// layers than models have.
std::vector<int> split_of_megatron_layout(std::string_view text);

/// Returns the inverse for a split of one stage or more, with runs of equal inner stages written once, and so many m.
std::string megatron_layout(const std::vector<int>& split, std::int64_t mtp_modules = 0);

}}  // namespace plumb::planner
