#include "planner/search/cluster_figures.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("each figure is another part of the cluster, and is multiplied by the factor alone") {
  const ClusterSpec cluster = preset_cluster("h100:16");
  std::set<std::string> names;
  for (const ClusterFigure& figure : cluster_figures()) {
    CHECK(names.insert(figure.name).second);
    if (figure.of_host || std::string(figure.name) == "device.peak_tflops") continue;
    const ClusterSpec twice = with_figure(cluster, figure, 2);
    CHECK(figure.value(twice) == doctest::Approx(2 * figure.value(cluster)));
    for (const ClusterFigure& other : cluster_figures()) {
      if (std::string(other.name) != figure.name) CHECK(other.value(twice) == other.value(cluster));
    }
  }
  CHECK(names.contains("network.bandwidth_gb_per_s"));
}

TEST_CASE("the peak of every precision is one figure") {
  ClusterSpec cluster = round_cluster(4);
  const ClusterSpec faster = with_figure(cluster, cluster_figures().front(), 3);
  for (const auto& [precision, flops] : cluster.device.peak_flops_per_second)
    CHECK(faster.device.peak_flops_per_second.at(precision) == 3 * flops);
}

}  // namespace plumb::test
