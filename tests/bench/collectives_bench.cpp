// Measures the time of one price of a collective. NCCL's model weighs every algorithm and protocol anew for each.
//
//   collectives_bench
//
// A layout's estimate asks for about two prices for each pipeline rank, since the prices of its layers are kept.

#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "planner/price/collective/collective_price.h"
#include "tests/bench/stopwatch.h"

namespace {

using namespace plumb;
using namespace plumb::test;

constexpr int kPrices = 100'000;

/// Returns the nanoseconds of one price.
double nanoseconds(const CollectivePrices& prices, const GroupPlacement& group, CollectiveKind kind) {
  double sum = 0;
  const double seconds = fastest_seconds(5, [&] {
    for (int i = 0; i < kPrices; ++i) sum += collective_time(prices, group, kind, (1 << 20) + i).count();
  });
  if (!(sum > 0)) std::abort();
  return seconds / kPrices * 1e9;
}

}  // namespace

int main() {
  ClusterSpec cluster;
  cluster.devices = 64;
  cluster.devices_per_node = 8;
  cluster.device.memory_bytes_per_second = 3e12;
  cluster.node_link = LinkSpec{.bytes_per_second = 450e9};
  cluster.network = LinkSpec{.bytes_per_second = 50e9};
  const CollectivePrices rings = collective_prices(cluster, 8);
  cluster.nccl = NcclSpec{.generation = NcclGeneration::kHopper, .nvlink_sharp = true};
  const CollectivePrices nccl = collective_prices(cluster, 8);
  const GroupPlacement node{.ranks = 8, .nodes = 1, .ranks_per_node = 8};
  const GroupPlacement nodes{.ranks = 64, .nodes = 8, .ranks_per_node = 8};
  for (const auto& [name, group] : {std::pair("8 ranks on 1 node", node), std::pair("64 ranks on 8 nodes", nodes)}) {
    for (const auto& [kind_name, kind] :
         {std::pair("all-reduce", CollectiveKind::kAllReduce), std::pair("all-gather", CollectiveKind::kAllGather)}) {
      const double ring = nanoseconds(rings, group, kind);
      const double chosen = nanoseconds(nccl, group, kind);
      fmt::print("{} of {}: NCCL's choice {:.0f} ns, {:.1f} times a ring's formula\n", kind_name, name, chosen,
                 chosen / ring);
    }
  }
  return 0;
}
