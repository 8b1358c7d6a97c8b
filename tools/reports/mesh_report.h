#pragma once
// Pipeline ranks that are meshes of different shape, and what goes between them.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planner/evaluate/evaluation.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace tools {

/// Returns the tables of the ranks' meshes with their peaks, and of the reshardings between them; empty for ranks that
/// are alike.
std::string mesh_text(const Plan& plan, const Evaluation& evaluation);

/// Returns the same as the keys `meshes` and `reshardings`; no keys for ranks that are alike.
nlohmann::ordered_json mesh_json(const Plan& plan, const Evaluation& evaluation);

}}  // namespace plumb::tools
