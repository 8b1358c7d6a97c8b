#pragma once
// The sharding of a part of a layer graph on a mesh of devices of one or two axes: for each node, how each axis of the
// mesh divides it (Alpa's intra-operator parallelism, Zheng et al. 2022, section 4).
//
//   ShardingQuestion question{.begin = 0, .end = nodes.size(), .mesh = {two_nodes, eight_devices}, .samples = 32};
//   const GraphSharding sharding = cheapest_sharding(pricing, question);
//
// Costs are seconds of one micro-batch on the mesh, forward and backward: computing, which the axes of the mesh that
// divide a node share evenly; the collectives of node_axes.h; resharding where a tensor is read divided otherwise than it
// was made (an all-gather, an all-to-all, or a slice, which is free); and the sum of gradients, once in so many
// micro-batches. Collectives take the cluster's own price.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/price/pricing.h"
#include "planner/shard/assignment.h"
#include "planner/shard/integer_program.h"
#include "planner/shard/node_axes.h"

namespace plumb { inline namespace planner {

struct ShardingQuestion {
  int begin = 0, end = 0;                ///< nodes of the graph
  std::array<GroupPlacement, 2> mesh;    ///< the groups of its two axes; one of a single rank is no axis
  std::int64_t samples = 1;              ///< of a micro-batch, on the whole mesh
  std::int64_t microbatches = 1;         ///< of a step
  double seconds_per_parameter = 0;      ///< a price of each parameter that a device holds, where memory is short
  std::vector<ShardingKind> kinds = {};  ///< those that nodes may have; empty: all
  std::size_t most_entries = std::size_t{1} << 22;  ///< of a table of the elimination
  IntegerSolver solver = {};                        ///< asked where the elimination is not exact; empty: none
};

/// The axes of the mesh that divide a node.
struct NodeSharding {
  std::array<int, 2> axis = {-1, -1};  ///< index into node_axes(); -1: the node is replicated along it

  friend bool operator==(const NodeSharding&, const NodeSharding&) = default;
};

struct GraphSharding {
  std::array<GroupPlacement, 2> mesh;
  std::vector<NodeSharding> nodes;  ///< [node - begin]
  Seconds cost{0};                  ///< of a micro-batch
  Seconds bound{0};                 ///< no sharding takes less
  bool exact = true;
  std::string method;              ///< "elimination", or the name of the solver that was asked where it is not exact
  Seconds forward{0};              ///< the part of the cost that is the forward's, by the share of its computing
  std::int64_t optimized = 0;      ///< parameters whose optimizer state it holds: replicas divide them (ZeRO 1)
  std::int64_t parameters = 0;     ///< that the device with most of them holds
  std::int64_t kept_elements = 0;  ///< that a device keeps of a micro-batch for the backward
};

/// Returns the cheapest sharding. Where none is cheaper the one with fewer divided nodes stands.
GraphSharding cheapest_sharding(Pricing& pricing, const ShardingQuestion& question);

/// [node] true if its output stays for the backward, of itself or of a reader.
std::vector<bool> kept_outputs(const std::vector<GraphNode>& nodes);

/// Returns the kinds along both axes of the mesh: "column x batch".
std::string to_text(const std::vector<NodeAxis>& axes, const NodeSharding& sharding);

/// Returns the question as costs of choices; `choices` are those of each node.
struct ShardingProblem {
  std::vector<std::vector<NodeAxis>> axes;         ///< [node - begin]
  std::vector<std::vector<NodeSharding>> choices;  ///< [node - begin]
  AssignmentProblem costs;
};
ShardingProblem sharding_problem(Pricing& pricing, const ShardingQuestion& question);

}}  // namespace plumb::planner
