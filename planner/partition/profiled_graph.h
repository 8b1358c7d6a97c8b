#pragma once
// A layer graph with measured costs: the one form of PipeDream's and DAPPLE's profiles, Piper's inputs and those of
// dnn-partitioning. Its vertices keep the file's order.

#include <cstdint>
#include <string>
#include <vector>

#include <boost/dynamic_bitset.hpp>
#include <boost/graph/adjacency_list.hpp>

#include "schedules/time.h"

namespace plumb { inline namespace planner {

/// A way to run a node. All figures are those of one of the `tensor` devices that share it.
struct NodeWay {
  int tensor = 1;
  std::string name;            ///< "vanilla", "activation recomp"
  Seconds seconds{0};          ///< forward and backward of a micro-batch
  double weight_bytes = 0;     ///< gradients that replicas sum
  double in_flight_bytes = 0;  ///< kept of each micro-batch in flight
  double state_bytes = 0;      ///< kept all the time

  friend bool operator==(const NodeWay&, const NodeWay&) = default;
};

struct ProfiledNode {
  std::string name;
  double output_bytes = 0;    ///< of a micro-batch
  std::vector<NodeWay> ways;  ///< the first is on one device and rebuilds nothing
};

/// A tensor that one node makes and another reads.
struct ProfiledEdge {
  double bytes = 0;  ///< of a micro-batch, one way
  /// [way of the source], [way of the target] bytes that the tensor-parallel devices of that end exchange besides;
  /// empty: none.
  std::vector<double> source_bytes, target_bytes;
};

using ProfiledGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, ProfiledNode, ProfiledEdge>;

/// A set of nodes of a graph, by their number.
using NodeSet = boost::dynamic_bitset<std::uint64_t>;

/// Returns the nodes, each behind its inputs; of those that could come next, the one that the file names first. Throws
/// SpecError naming `file` if there is no node, or if the edges form a cycle.
std::vector<int> topological_order(const ProfiledGraph& graph, const std::string& file);

/// Throws SpecError "PLACE: ..." if a graph of so many nodes is too large.
void require_node_count(std::size_t nodes, const std::string& place);

}}  // namespace plumb::planner
