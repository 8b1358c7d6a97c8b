#pragma once
// The action graph on Boost.Graph: each vertex is an action (its id), each edge a dependency. A cycle is a deadlock.
// The longest path, once edges are given lengths, is the critical path (tests/simulator/longest_path.h).

#include <string>
#include <vector>

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include "schedules/dependencies/dependencies.h"

namespace plumb { inline namespace schedules {

using ActionGraph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, Dependency,
                                                       boost::no_property, std::uint32_t, std::uint32_t>;

/// Returns the graph of dependencies(schedule, sends).
ActionGraph action_graph(const Schedule& schedule, Sends sends = Sends::kBuffered);

/// Returns the ids along one cycle, each of which waits for the one before it (the first for the last), or an empty
/// list if there is no cycle.
std::vector<std::int32_t> find_cycle(const ActionGraph& graph);

/// Returns the deadlock, action by action, back to the first: "rank 0: 0B0 (position 3) waits for rank 1: 1B0 (position
/// 2), which waits for ...". Long cycles keep their first and last few actions. Returns an empty string for an empty
/// cycle.
std::string describe_cycle(const Schedule& schedule, const std::vector<std::int32_t>& cycle);

}}  // namespace plumb::schedules
