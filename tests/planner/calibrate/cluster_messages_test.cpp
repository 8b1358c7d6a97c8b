#include "planner/calibrate/cluster_messages.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace plumb::test {
namespace {

const MessageLink kMessageLink{.latency = Seconds{50e-6},
                               .rendezvous = Seconds{200e-6},
                               .eager_bytes = 60 << 10,
                               .bytes_per_second = 1.2e8,
                               .burst_bytes = 124 << 10};

std::vector<KernelSample> first_samples(int sizes) {
  std::vector<KernelSample> samples;
  for (const std::int64_t kib : {1, 16, 32, 60, 72, 96, 128, 256, 512, 1024}) {
    if (static_cast<int>(samples.size()) == sizes) break;
    const Seconds time = message_time(kMessageLink, kib << 10);
    samples.push_back({.kernel = "message",
                       .shape = {kib << 10},
                       .median = time,
                       .fastest = time,
                       .slowest = time,
                       .repeats = 9,
                       .busy_ranks = 2});
  }
  return samples;
}

ClusterSpec two_cpus() {
  ClusterSpec cluster{.name = "two cpus", .devices = 2, .devices_per_node = 2};
  cluster.device = {.name = "cpu",
                    .peak_flops_per_second = {{Precision::kFp32, 1e11}},
                    .memory_bytes = std::int64_t{1} << 32,
                    .memory_bytes_per_second = 1e10};
  cluster.node_link = LinkSpec{.bytes_per_second = 1e9, .efficiency = 0.5};
  cluster.samples = {{.kernel = "message",
                      .shape = {4},
                      .median = Seconds{1},
                      .fastest = Seconds{1},
                      .slowest = Seconds{1},
                      .repeats = 1,
                      .busy_ranks = 2}};
  return cluster;
}

}  // namespace

TEST_CASE("messages that were measured become the node's link and stay in the cluster's file") {
  const std::vector<KernelSample> samples = first_samples(10);
  const ClusterSpec cluster = with_messages(two_cpus(), samples, fit_messages(samples), "measured today");
  REQUIRE(cluster.node_link);
  CHECK(cluster.node_link->bytes_per_second == doctest::Approx(1.2e8));
  CHECK(cluster.node_link->efficiency == 1);
  CHECK(cluster.node_link->latency.count() == doctest::Approx(250e-6));  // pipelines' messages are announced
  CHECK(cluster.sources.at("node.bandwidth_gb_per_s") == "measured today");
  CHECK(cluster.samples.size() == 10);

  const ClusterSpec read = cluster_from_json(nlohmann::json::parse(to_json(cluster).dump()), "cluster.json");
  const std::optional<MessageLink> link = messages_of(read);
  REQUIRE(link);
  CHECK(link->rendezvous.count() == doctest::Approx(200e-6));
  CHECK(link->burst_bytes == 124 << 10);
  CHECK(link->bytes_per_second == doctest::Approx(1.2e8));
}

TEST_CASE("between nodes they are the network's, and hops of two kinds are not all taken for one") {
  ClusterSpec cluster = two_cpus();
  cluster.devices = 4;
  cluster.network = LinkSpec{.bytes_per_second = 1e9};
  const std::vector<KernelSample> samples = first_samples(10);
  cluster = with_messages(cluster, samples, fit_messages(samples), "measured today");
  CHECK(cluster.network->bytes_per_second == doctest::Approx(1.2e8));
  CHECK(cluster.node_link->bytes_per_second == 1e9);
  CHECK_FALSE(messages_of(cluster));
}

TEST_CASE("a few sizes, as a whole calibration measures, do not say what five constants are") {
  ClusterSpec cluster = two_cpus();
  cluster.samples = first_samples(7);
  CHECK_FALSE(messages_of(cluster));
  cluster.samples = first_samples(8);
  CHECK(messages_of(cluster));
}

}  // namespace plumb::test
