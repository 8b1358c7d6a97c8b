#pragma once
// The cost of sending a tensor of [rows, channels] from one pipeline stage to the next where the two lie on meshes of
// different shape (Zheng et al. 2022, Alpa, section 6; Zhuang et al. 2023).
//
//   // 64 MiB from dp=2,tp=4 to dp=4,tp=2
//   cheapest_resharding(prices, link, {.data = 2, .tensor = 4}, {.data = 4, .tensor = 2}, gather_group, 64 << 20)
//
// On a mesh the rows are divided over the `data` ranks. The `tensor` ranks of each hold all its rows (Megatron's
// activations), or a share each (`scattered`, sequence parallelism). B bytes in all go from s to d devices. Each tensor
// rank of a source block has a replica, and they share the sending evenly:
//
//   direct       every destination device receives all that it holds; B t_d bytes cross (B where the destination is
//                scattered):
//                t = n latency + max(bytes of a sender, bytes of a receiver) / bandwidth
//   all-gather   each destination tile crosses once, a share to each tensor rank, which gather among themselves:
//                t = n latency + max(B / s, B / d) / bandwidth + all-gather of B / data_d over the tensor group
//   broadcast    each destination tile crosses once and is passed on along the tensor ranks in `chunks` pieces:
//                t = (n + t_d - 1) latency + max(B / s, B / data_d) / bandwidth (1 + (t_d - 1) / chunks)
// n is the number of messages that one device waits for: ceil(data_s / data_d) where blocks join, one where they are
// cut.

#include <cstdint>
#include <string_view>

#include "planner/price/collective/collective_price.h"
#include "schedules/cost_table.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct TensorMesh {
  int data = 1;
  int tensor = 1;
  bool scattered = false;  ///< divided over the tensor ranks as well
};

enum class ReshardingKind : std::uint8_t { kDirect, kAllGather, kBroadcast };

/// Returns "direct", "all-gather" or "broadcast".
std::string_view resharding_name(ReshardingKind kind);

struct ReshardingPrice {
  ReshardingKind kind = ReshardingKind::kDirect;
  Seconds time{0};
  std::int64_t crossing_bytes = 0;  ///< over the links between the two meshes, all devices together
};

/// Returns the price of one kind. `link` joins one device to the other mesh; `gather_group` is the placement of a
/// tensor group of the destination. A scattered destination holds shares, so that its all-gather is direct. Throws
/// SpecError if a degree or `bytes` is below 1.
ReshardingPrice resharding(const CollectivePrices& prices, const LinkCost& link, const TensorMesh& from,
                           const TensorMesh& to, const GroupPlacement& gather_group, std::int64_t bytes,
                           ReshardingKind kind);

/// Returns the fastest of the three; among equals, the one that the list above has first.
ReshardingPrice cheapest_resharding(const CollectivePrices& prices, const LinkCost& link, const TensorMesh& from,
                                    const TensorMesh& to, const GroupPlacement& gather_group, std::int64_t bytes);

}}  // namespace plumb::planner
