#include "planner/evaluate/stage_chain.h"

#include <numeric>

#include <doctest/doctest.h>

#include "planner/evaluate/layout_order.h"
#include "planner/spec/cluster_sites.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

/// Returns round_cluster() with devices of that speed and memory.
ClusterSpec site(int devices, double speed, std::int64_t mebibytes) {
  ClusterSpec cluster = round_cluster(devices);
  for (auto& [precision, flops] : cluster.device.peak_flops_per_second) flops *= speed;
  cluster.device.memory_bytes_per_second *= speed;
  cluster.device.memory_bytes = mebibytes << 20;
  return cluster;
}

std::vector<int> split_on(const ClusterSpec& cluster, const Layout& layout) {
  ModelSpec model = small_gpt();
  model.layers = 24;
  model.vocab = 1024;
  Pricing pricing(model, cluster, kSmallTraining);
  return fastest_split(stage_chain(pricing, layout, order_of(pricing.training(), layout).stages));
}

}  // namespace

TEST_CASE("a device of twice the speed gets twice the layers") {
  const ClusterSpec both = joined_sites({site(4, 2, 1 << 16), site(4, 1, 1 << 16)}, {});
  const std::vector<int> split = split_on(both, {.data = 4, .pipeline = 2});
  CHECK(std::accumulate(split.begin(), split.end(), 0) == 24);
  CHECK(split.front() >= 15);
  CHECK(split.front() <= 17);
}

TEST_CASE("a device gets no more layers than it can hold, as long as any split fits") {
  const Layout layout{.tensor = 4, .pipeline = 2};
  const std::vector<int> even = split_on(joined_sites({site(4, 1, 1 << 16), site(4, 1, 1 << 16)}, {}), layout);
  CHECK(std::abs(even.front() - even.back()) <= 2);
  const std::vector<int> held = split_on(joined_sites({site(4, 1, 500), site(4, 1, 1 << 16)}, {}), layout);
  CHECK(held.front() < even.front() - 2);
  const std::vector<int> none_fits = split_on(joined_sites({site(4, 1, 16), site(4, 1, 16)}, {}), layout);
  CHECK(none_fits == even);
}

TEST_CASE("on one site all stages are as fast as another") {
  ModelSpec model = small_gpt();
  Pricing pricing(model, round_cluster(8), kSmallTraining);
  const Layout layout{.tensor = 4, .pipeline = 2};
  const StageChain stages = stage_chain(pricing, layout, order_of(pricing.training(), layout).stages);
  CHECK(stages.limits.slowness.empty());
  CHECK(stages.chain.seconds.size() == 8);
  CHECK(stages.limits.bytes.size() == 2);
}

}  // namespace plumb::test
