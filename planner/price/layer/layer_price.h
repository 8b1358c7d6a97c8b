#pragma once
// The prices of one layer on one rank, pass by pass: its kernels, and the collectives of the groups that share it.
// Without a stack both are the steps of the layer's program (kernels/layer/program/program.h), which Plumb's executors
// run (tests/tools/whole/tensor_traffic_test.cpp holds the bytes of tensor groups against theirs). With a stack they are
// that framework's (framework/kernel.h).

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "planner/price/collective/collective_price.h"
#include "planner/price/kernel/kernel_price.h"
#include "planner/spec/stack_spec.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace planner {

inline constexpr int kInnerGroupCount = 3;  ///< groups of Group: tensor, context, expert

/// The compute and the blocking collectives of one pass, summed.
struct PassPrice {
  Seconds compute{0};
  Seconds host{0};            ///< time that the host takes to launch the whole pass
  double host_sharpness = 0;  ///< see spec/stack_spec.h
  using ByKind = std::array<Seconds, kPricedCollectiveCount>;
  std::array<ByKind, kInnerGroupCount> collective_seconds{};  ///< [Group][CollectiveKind] blocking time
  std::array<std::array<std::int64_t, kPricedCollectiveCount>, kInnerGroupCount> collective_bytes{};

  PassPrice& operator+=(const PassPrice& other);
};

/// Returns the time of the pass: that of the device's compute and collectives, or that of the host where it is longer.
Seconds total(const PassPrice& price);

/// Returns a segment for the compute, then one for each group and kind of collective; none for a time of 0. Where the
/// host is slower than the device, compute lasts as much longer.
std::vector<Segment> segments_for(const PassPrice& price);

struct LayerPrice {
  PassPrice forward;
  PassPrice input_grad;
  PassPrice weight_grad;
  PassPrice rebuild_selective;  ///< norms and activation once more
  /// A transformer layer's forward once more. Empty for embedding and head, except on devices that run
  /// fused_program(): those are of Plumb's own executor, which rebuilds a whole stage.
  PassPrice rebuild_full;
  PassPrice::ByKind hidden{};  ///< collectives of the tensor group that a whole backward hides beside its products
};

/// Returns the price of both gradients in one action. With StackSpec::async_tensor_gradients the sum of a matrix's
/// input gradients travels beside the product of its weight gradient, and with sequence parallelism its gathered input
/// beside that of its input gradient. In separate actions I and W neither is hidden.
PassPrice whole_backward(const LayerPrice& price);

/// Placement of the groups that a layer's collectives use.
struct InnerGroups {
  GroupPlacement tensor;
  GroupPlacement context;
  GroupPlacement expert;

  friend bool operator==(const InnerGroups&, const InnerGroups&) = default;
};

/// Returns the price of a layer. With a stack it has the kernels and collectives of that framework
/// (framework/kernel.h); without, those of the layer's program. `rebuilds_cheap`: recomputation is selective, which
/// decides what KernelPrices::fused products take in.
LayerPrice layer_price(const KernelPrices& kernels, const CollectivePrices& collectives, const InnerGroups& groups,
                       const Layer& layer, const LayerWork& work, const StackSpec* stack, bool rebuilds_cheap = false);

/// Returns the time of an optimizer step of the layer's parameters on one rank, which updates 1 / `shards` of each
/// tensor, and 1 / `expert_shards` of the routed experts' tensors.
Seconds optimizer_time(const KernelPrices& kernels, const Layer& layer, const LayerWork& work, int shards,
                       int expert_shards);

}}  // namespace plumb::planner
