#pragma once
// A file of costs, for what `--costs` has no room for: each part of the model by itself, the embedding and the head
// besides, links with a bandwidth each, and memory in bytes.
//
//   {"plumb_format": 1,
//    "parts": [{"forward_s": 0.010, "input_grad_s": 0.011, "weight_grad_s": 0.009, "activation_bytes": 1000000,
//               "released_at_input_grad_bytes": 400000, "message_bytes": 50000}, ...],
//    "embedding": {"forward_s": 0.001, "input_grad_s": 0, "weight_grad_s": 0.001},
//    "head": {"forward_s": 0.004, "input_grad_s": 0.004, "weight_grad_s": 0.004, "activation_bytes": 80000},
//    "links": [{"latency_s": 1e-5, "bandwidth_gb_per_s": 25}, ...],
//    "max_activation_bytes": [4000000, ...]}
//
// Parts go from the first to the last: a stage each, or those that a search joins to stages. The embedding is of the
// first part and the head of the last. A part has "backward_s" where backwards are whole, and perhaps "recompute_s".
// Links go from each rank to the next one, one for all or one each; "max_activation_bytes" is by rank, or one for all.

#include <string>
#include <string_view>

#include "tools/inputs/costs_option.h"

namespace plumb { inline namespace tools {

/// Returns the costs in the text of a file. Throws SpecError with file, place and remedy.
CostsOption parse_costs_file(std::string_view text, const std::string& file);

/// Returns the costs that an option gives: a file whose name ends in .json, or keys as parse_costs has them; all costs
/// are 1 where it is empty. Throws InputError for a file, UsageError for keys that cannot be read.
CostsOption costs_input(const std::string& option);

}}  // namespace plumb::tools
