#pragma once
// The reasons for which pipeline ranks cannot be meshes of different shape.

#include <optional>
#include <string>

#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"

namespace plumb { inline namespace planner {

/// Returns one sentence with the remedy, or nothing if the layout has no meshes, or its meshes can exist on that many
/// devices. What each rank's own layout divides is asked elsewhere (search/layout_conflict.h).
std::optional<std::string> mesh_conflict(const ModelSpec& model, int devices, const Layout& layout);

}}  // namespace plumb::planner
