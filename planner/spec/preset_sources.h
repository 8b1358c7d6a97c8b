#pragma once
// Presets that Plumb ships name the source of each of their numbers.

#include <string>
#include <string_view>

#include "planner/spec/cluster_spec.h"

namespace plumb { inline namespace planner {

/// Reads a preset like parse_cluster. Throws SpecError also if a number has no source.
ClusterSpec parse_cluster_preset(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
