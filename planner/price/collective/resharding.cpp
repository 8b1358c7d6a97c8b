#include "planner/price/collective/resharding.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

constexpr int kBroadcastChunks = 16;

void require_mesh(const TensorMesh& mesh, std::string_view which) {
  if (mesh.data < 1 || mesh.tensor < 1) {
    throw SpecError(fmt::format("resharding: the {} mesh is dp={}, tp={}: give degrees of 1 or more", which, mesh.data,
                                mesh.tensor));
  }
}

}  // namespace

std::string_view resharding_name(ReshardingKind kind) {
  constexpr std::string_view kNames[] = {"direct", "all-gather", "broadcast"};
  return kNames[static_cast<std::size_t>(kind)];
}

ReshardingPrice resharding(const CollectivePrices& prices, const LinkCost& link, const TensorMesh& from,
                           const TensorMesh& to, const GroupPlacement& gather_group, std::int64_t bytes,
                           ReshardingKind kind) {
  require_mesh(from, "sending");
  require_mesh(to, "receiving");
  if (bytes < 1) throw SpecError(fmt::format("resharding: {} bytes are nothing to send: give 1 or more", bytes));

  const auto whole = static_cast<double>(bytes);
  const double senders = static_cast<double>(from.data) * from.tensor;
  const double receivers = static_cast<double>(to.data) * to.tensor;
  const int messages = (from.data + to.data - 1) / to.data;
  const bool copies = !to.scattered && to.tensor > 1;
  ReshardingPrice result{.kind = kind, .crossing_bytes = bytes};
  switch (kind) {
    case ReshardingKind::kDirect: {
      if (copies) result.crossing_bytes = bytes * to.tensor;
      const auto crossing = static_cast<double>(result.crossing_bytes);
      result.time =
          messages * link.latency + Seconds{std::max(crossing / senders, crossing / receivers) / link.bytes_per_second};
      break;
    }
    case ReshardingKind::kAllGather:
      result.time =
          messages * link.latency + Seconds{std::max(whole / senders, whole / receivers) / link.bytes_per_second};
      if (copies) result.time += collective_time(prices, gather_group, CollectiveKind::kAllGather, bytes / to.data);
      break;
    case ReshardingKind::kBroadcast: {
      const int passed_on = copies ? to.tensor - 1 : 0;
      const double tile = copies ? whole / to.data : whole / receivers;
      result.time =
          (messages + passed_on) * link.latency + Seconds{std::max(whole / senders, tile) / link.bytes_per_second *
                                                          (1 + static_cast<double>(passed_on) / kBroadcastChunks)};
      break;
    }
  }
  return result;
}

ReshardingPrice cheapest_resharding(const CollectivePrices& prices, const LinkCost& link, const TensorMesh& from,
                                    const TensorMesh& to, const GroupPlacement& gather_group, std::int64_t bytes) {
  ReshardingPrice best = resharding(prices, link, from, to, gather_group, bytes, ReshardingKind::kDirect);
  for (const ReshardingKind kind : {ReshardingKind::kAllGather, ReshardingKind::kBroadcast}) {
    const ReshardingPrice other = resharding(prices, link, from, to, gather_group, bytes, kind);
    if (other.time < best.time) best = other;
  }
  return best;
}

}}  // namespace plumb::planner
