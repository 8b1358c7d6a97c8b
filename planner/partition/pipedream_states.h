#pragma once
// The states of PipeDream's optimizer: sets of layers, closed under their inputs, at whose end it may cut.
//
// It starts with the first layer that has no input and all that this one needs. From a state it goes on by one layer
// that reads a layer of the state, together with all that this layer needs. A state is known by its antichain, the
// layers that nothing else in the state reads (Narayanan et al. 2019; optimizer/optimizer_graph_hierarchical.py).

#include <vector>

#include "planner/partition/profiled_graph.h"

namespace plumb { inline namespace planner {

/// All of these are [state].
struct PipedreamStates {
  std::vector<NodeSet> nodes;
  std::vector<double> seconds;           ///< of all its nodes
  std::vector<double> activation_bytes;  ///< of all its nodes
  std::vector<double> weight_bytes;      ///< of all its nodes
  /// Outputs of the antichain, and of each node in front of it that is read outside the past of one antichain node.
  /// The latter may be read within the state only: PipeDream counts it all the same.
  std::vector<double> output_bytes;
};

/// Returns the states in PipeDream's topological order, each behind those that it contains. The order of branches beside
/// each other is PipeDream's where it is fixed there, and the file's where it hangs on Python's hashing. Throws
/// SpecError naming `file` for a cycle and if there are more than 20,000 states.
PipedreamStates pipedream_states(const ProfiledGraph& graph, const std::string& file);

}}  // namespace plumb::planner
