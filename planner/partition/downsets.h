#pragma once
// Downsets of a measured graph: sets of nodes that hold the inputs of all their nodes. Stages that follow each other lie
// between downsets that contain each other (Tarnawski et al. 2020 call them ideals).

#include <vector>

#include "planner/partition/profiled_graph.h"

namespace plumb { inline namespace planner {

/// Sets at which a partition may cut, by their number of nodes: the first is empty, the last has all nodes.
struct Downsets {
  std::vector<NodeSet> sets;
  bool all = true;     ///< every downset of the graph is there
  bool chain = false;  ///< each set contains the one before it
};

/// Returns every downset. Where there are more than `most`, returns at most `clusters` + 1 beginnings of one topological
/// order, `order`, such that much the same time lies between each two.
Downsets downsets_of(const ProfiledGraph& graph, const std::vector<int>& order, std::size_t most, std::size_t clusters);

/// Returns the bytes of a micro-batch that leave the nodes of a set, each node's output once.
double bytes_out(const ProfiledGraph& graph, const NodeSet& set);

}}  // namespace plumb::planner
