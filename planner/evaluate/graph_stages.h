#pragma once
// A layer graph to the stages of a layout: which consecutive nodes each model part holds (partition/chain_partition.h).

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/partition/balanced_partition.h"
#include "planner/price/pricing.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

/// Returns the layout's own split, or the fastest (evaluate/stage_chain.h). A split counts nodes. Throws SpecError if a split of the user's does not give every part a node, or all nodes to some
/// part.
Partition graph_partition(Pricing& pricing, const Layout& layout, const Schedule& schedule);

/// [model part] the first node of the part; one entry more stands for the end.
std::vector<int> first_nodes(const std::vector<int>& split);

/// [model part] the layers that the executor runs; empty lists where it does not run the graph.
std::vector<std::vector<Layer>> runnable_layers_by_part(const GraphTables& graph, const std::vector<int>& split);

/// Footprints of the nodes of one model part.
std::vector<LayerFootprint> graph_footprints_of_part(const Pricing& pricing, const Layout& layout,
                                                     const std::vector<int>& split, int part);

/// Returns the bytes that a part sends on for a micro-batch (all tensors that cross its end), and the bytes of
/// gradients that it sends back (of the tensors that cross its beginning). `bytes` is the size of an element of the
/// whole micro-batch.
std::pair<std::int64_t, std::int64_t> graph_message_bytes(const GraphTables& graph, const std::vector<int>& split,
                                                          int part, std::int64_t bytes);

/// Sums of the gradients of tables that nodes of this part share with nodes on other ranks, once a step.
std::vector<Segment> graph_tied_reduction(const Pricing& pricing, const Layout& layout, const Schedule& schedule,
                                          const std::vector<int>& split, int part);

}}  // namespace plumb::planner
