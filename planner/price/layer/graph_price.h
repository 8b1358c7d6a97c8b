#pragma once
// The time of a node of a layer graph on one device, pass by pass. A node that the executor runs has the kernels of
// kernels/layer.h. For the other nodes, products are priced by tiles and waves (price/kernel/gemm_time.h), a
// convolution as its implicit product, and all other kernels by the bytes that cross memory. Where the cluster has
// measured products, they correct both.

#include <cstdint>

#include "planner/graph/graph_node.h"
#include "planner/price/kernel/kernel_price.h"
#include "planner/price/layer/layer_price.h"

namespace plumb { inline namespace planner {

/// Returns the prices of a node for a micro-batch of so many samples.
LayerPrice graph_node_price(const KernelPrices& kernels, const GraphNode& node, std::int64_t samples);

/// Returns the time of an optimizer step of the node's parameters on one rank, which updates 1 / `shards` of each
/// tensor.
Seconds graph_optimizer_time(const KernelPrices& kernels, const GraphNode& node, int shards);

}}  // namespace plumb::planner
