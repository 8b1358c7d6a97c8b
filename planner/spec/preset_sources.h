#pragma once
// What Plumb ships says where each of its numbers is published.

#include <string>
#include <string_view>

#include "planner/spec/cluster_spec.h"

namespace plumb { inline namespace planner {

/// As parse_cluster, for a preset. Throws SpecError also naming a number that has no source.
ClusterSpec parse_cluster_preset(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
