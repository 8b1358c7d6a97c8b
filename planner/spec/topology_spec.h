#pragma once
// A user's own network, as JSON: the links between its nodes, and the node of each world rank.
//
//   {"nodes": ["a", "b", "switch"],
//    "devices": ["a", "b"],                                   world rank 0 on node a, rank 1 on node b
//    "links": [{"from": "a", "to": "switch", "bandwidth_gb_per_s": 50, "latency_us": 2},
//              {"from": "b", "to": "switch", "bandwidth_gb_per_s": 50, "latency_us": 2, "both_ways": true}]}
//
// A link carries both ways, each at its full rate, unless "both_ways" is false; "latency_us" is 0 unless given. GB are
// 1e9 bytes. Messages take the path with the fewest links; among several, the path that is listed first
// (simulator/network/topology/topology.h).

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "simulator/network/topology/topology.h"

namespace plumb { inline namespace planner {

/// Reads the JSON form. Throws SpecError with the place: an unknown or missing key, a node that is named twice or not
/// at all (with the nearest name), two devices on one node, no device, a bandwidth that is not above 0, a negative
/// latency, a link from a node to itself.
Topology topology_from_json(const nlohmann::json& json, const std::string& place);
Topology parse_topology(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
