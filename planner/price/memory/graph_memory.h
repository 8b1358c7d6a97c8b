#pragma once
// The tensors that cross a cut of a layer graph, and the bytes that a stage of consecutive nodes holds.
//
// A tensor that several nodes read is kept once on a stage, and crosses a cut once, even where it only passes through
// on its way to a later stage (a skip). Full recomputation keeps the inputs of each block and rebuilds one block at a
// time; nodes outside blocks keep everything.

#include <cstdint>
#include <vector>

#include "planner/graph/graph_node.h"
#include "planner/price/memory/stage_memory.h"

namespace plumb { inline namespace planner {

/// Elements of one sample that cross between the nodes before a place and those from it on.
struct GraphCut {
  std::int64_t elements = 0;           ///< elements of activations
  std::int64_t gradient_elements = 0;  ///< those that need a gradient, since a node before the cut learns from it
  int tensors = 0;

  friend bool operator==(const GraphCut&, const GraphCut&) = default;
};

/// Returns the cuts by [place]: before node 0, before node 1, ..., behind the last.
std::vector<GraphCut> graph_cuts(const std::vector<GraphNode>& nodes);

/// Returns the footprints of the nodes [begin, end) for a micro-batch of so many samples: in order one for each node,
/// or for each block where blocks are rebuilt.
std::vector<LayerFootprint> graph_footprints(const std::vector<GraphNode>& nodes, int begin, int end,
                                             const TrainingSpec& training, std::int64_t samples, Recompute recompute);

}}  // namespace plumb::planner
