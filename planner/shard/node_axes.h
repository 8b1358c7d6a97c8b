#pragma once
// The axes along which a node of a layer graph may be divided among devices, and what that costs in communication.
//
// Every operator is a loop over axes, as an einsum is: y[b, s, o] = sum over i of x[b, s, i] w[o, i] has the axes b
// (batch), s (sequence), o (column) and i (row). Devices that share an axis hold a part of each tensor that has it:
//
//   output without the axis      partial sums: an all-reduce in the forward; or a reduce-scatter along another axis, and
//                                an all-gather of the gradient in the backward (Korthikanti et al. 2022)
//   input without the axis       its gradient is a partial sum: an all-reduce in the backward; or it is stored divided
//                                along another axis: an all-gather in the forward, a reduce-scatter in the backward
//   parameters without the axis  their gradients are summed once a step (data parallelism)
//
// These are the shardings of Megatron-LM (Shoeybi et al. 2019), GShard (Lepikhin et al. 2020) and Alpa (Zheng et al.
// 2022, table 3).

#include <cstdint>
#include <string_view>
#include <vector>

#include "planner/graph/graph_node.h"
#include "schedules/collective_kind.h"

namespace plumb { inline namespace planner {

enum class ShardingKind : std::uint8_t { kReplicate, kBatch, kSequence, kSpatial, kColumn, kRow, kExpert };

/// Returns "replicate", "batch", "sequence", "spatial", "column", "row" or "expert".
std::string_view sharding_name(ShardingKind kind);

/// How a tensor lies on the devices that share an axis. Dimension 0 is the batch, the others are those of the sample.
struct TensorSide {
  int dimension = -1;   ///< stored divided along this dimension; -1: whole on every device
  bool summed = false;  ///< the node works on the whole tensor: partial sums of an output, or of an input's gradient

  friend bool operator==(const TensorSide&, const TensorSide&) = default;
};

/// A collective besides, such as the keys that sequence parallelism gathers.
struct ExtraTraffic {
  CollectiveKind kind = CollectiveKind::kAllGather;
  std::int64_t elements = 0;  ///< of a sample, the whole buffer of one device

  friend bool operator==(const ExtraTraffic&, const ExtraTraffic&) = default;
};

struct NodeAxis {
  ShardingKind kind = ShardingKind::kReplicate;
  std::int64_t size = 0;  ///< equal parts that it has; 0: the samples of a micro-batch
  TensorSide output;
  std::vector<TensorSide> inputs;
  bool divides_parameters = false;
  std::vector<ExtraTraffic> forward, backward;

  friend bool operator==(const NodeAxis&, const NodeAxis&) = default;
};

/// Returns the axes of node `index`; the first is the batch. An operator whose axes are not known, such as a recurrence,
/// has the batch only.
std::vector<NodeAxis> node_axes(const std::vector<GraphNode>& nodes, int index);

}}  // namespace plumb::planner
