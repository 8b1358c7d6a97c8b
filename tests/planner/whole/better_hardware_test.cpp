// Better hardware never has a slower best layout.

#include <array>
#include <random>

#include <doctest/doctest.h>

#include "planner/search/search.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("more memory, bandwidth or arithmetic never makes the best layout slower") {
  std::mt19937 random(4);
  const auto any = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  const std::array<void (*)(ClusterSpec&), 5> improvements = {
      [](ClusterSpec& cluster) { cluster.device.memory_bytes *= 2; },
      [](ClusterSpec& cluster) { cluster.device.memory_bytes_per_second *= 2; },
      [](ClusterSpec& cluster) { cluster.node_link->bytes_per_second *= 2; },
      [](ClusterSpec& cluster) { cluster.network->bytes_per_second *= 2; },
      [](ClusterSpec& cluster) {
        for (auto& [precision, flops_per_second] : cluster.device.peak_flops_per_second) flops_per_second *= 2;
      },
  };
  int faster = 0;
  for (int draw = 0; draw < 20; ++draw) {
    ClusterSpec cluster = round_cluster(any(4, 8));
    cluster.device.memory_bytes = std::int64_t{any(700, 1200, 2400)} << 20;
    cluster.node_link->bytes_per_second = any(30e9, 100e9);
    cluster.network->bytes_per_second = any(1e9, 10e9);
    const TrainingSpec training{.global_batch = any(8, 16), .sequence = any(128, 512)};
    const auto best = [&](const ClusterSpec& of) {
      const SearchResult found = found_layouts(small_gpt(), of, training, {}, {.keep = 1});
      return found.ranked.empty() ? SimTime::max() : found.ranked.front().simulation.makespan;
    };
    const SimTime before = best(cluster);
    for (std::size_t i = 0; i < improvements.size(); ++i) {
      CAPTURE(draw);
      CAPTURE(i);
      ClusterSpec better = cluster;
      improvements[i](better);
      const SimTime after = best(better);
      CHECK(after <= before);
      faster += after < before ? 1 : 0;
    }
  }
  CHECK(faster > 50);
}

}  // namespace plumb::test
