#pragma once
// What a node of a layer graph lasts on one device, pass by pass. A node that the executor runs has the kernels of
// kernels/layer/layer.h; of the others products are priced by tiles and waves (price/kernel/gemm_time.h), a convolution
// as its implicit product, everything else by the bytes that cross memory. Where the cluster has measured products,
// they correct both.

#include <cstdint>

#include "planner/graph/graph_node.h"
#include "planner/price/kernel/kernel_price.h"
#include "planner/price/layer/layer_price.h"

namespace plumb { inline namespace planner {

/// `samples` is a micro-batch's.
LayerPrice graph_node_price(const KernelPrices& kernels, const GraphNode& node, std::int64_t samples);

/// One optimizer step of the node's parameters on one rank, which updates 1 / `shards` of each tensor.
Seconds graph_optimizer_time(const KernelPrices& kernels, const GraphNode& node, int shards);

}}  // namespace plumb::planner
