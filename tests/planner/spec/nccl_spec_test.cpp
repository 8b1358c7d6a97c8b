#include "planner/spec/nccl_spec.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/spec/cluster_spec.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

nlohmann::json h100_json() {
  return nlohmann::json::parse(source_text("tools/specs/clusters/h100.json"));
}

}  // namespace

TEST_CASE("units of the nccl block become SI") {
  nlohmann::json json = h100_json();
  json["nccl"] = {{"generation", "blackwell"},
                  {"host_cpu", "amd"},
                  {"nvlink", true},
                  {"nic_latency_us", 2.5},
                  {"host_crossing_gb_per_s", 24},
                  {"tree_pattern", "plain"},
                  {"low_latency_launch_us", 10},
                  {"simple_launch_us", 20},
                  {"bandwidth_scale", 0.9},
                  {"ring", {{"channels", 8}, {"inside_gb_per_s", 24}}}};
  const NcclSpec nccl = *parse_cluster(json.dump(), "c.json").nccl;
  CHECK(nccl.generation == NcclGeneration::kBlackwell);
  CHECK(nccl.host_cpu == HostCpu::kAmd);
  CHECK(nccl.nic_latency.count() == doctest::Approx(2.5e-6));
  CHECK(nccl.host_crossing_bytes_per_second == doctest::Approx(24e9));
  CHECK_FALSE(nccl.balanced_tree);
  CHECK(nccl.calibration.simple_launch.count() == doctest::Approx(20e-6));
  CHECK(nccl.calibration.bandwidth_scale == 0.9);
  CHECK(nccl.ring->between_bytes_per_second == doctest::Approx(24e9));  // the rate inside, where it is not given
}

TEST_CASE("the nccl block and measured tables survive their JSON form") {
  nlohmann::json json = h100_json();
  json["nccl"]["ring"] = {{"channels", 8}, {"inside_gb_per_s", 24}, {"between_gb_per_s", 12}};
  json["nccl"]["simple_launch_us"] = {{"value", 17.5}, {"source", "measured"}};
  json["nccl"]["host_crossing_gb_per_s"] = 24;
  json["collective_tables"] = {{{"collective", "all_to_all"}, {"ranks", 8}, {"bytes", {1, 20}}, {"us", {0.5, 8.25}}}};
  const ClusterSpec cluster = parse_cluster(json.dump(), "c.json");
  const auto written = to_json(cluster);
  const ClusterSpec again = parse_cluster(written.dump(), "again");
  CHECK(again.nccl == cluster.nccl);
  CHECK(again.collective_tables == cluster.collective_tables);
  CHECK(written["nccl"]["simple_launch_us"]["source"] == "measured");
  CHECK(to_json(again).dump() == written.dump());
}

TEST_CASE("a bad nccl block is refused with place and remedy") {
  const auto refused = [](const char* key, nlohmann::json value, const char* part) {
    nlohmann::json json = h100_json();
    json["nccl"][key] = std::move(value);
    CAPTURE(key);
    check_refused<SpecError>([&] { parse_cluster(json.dump(), "c.json"); }, "c.json: nccl", part);
  };
  refused("generation", "turing", "hopper");
  refused("host_cpu", "arm", "intel");
  refused("nvlink", 18, "nvlink");
  refused("nics", 4, "network.nics_per_node");
  refused("nic_latency_us", -1, "nic_latency_us");
  refused("bandwidth_scale", 0, "bandwidth_scale");
  refused("bandwidth_scale", 1.4, "mapping is wrong");
  refused("tree_pattern", "oak", "balanced");
  refused("ring", {{"channels", 0}, {"inside_gb_per_s", 20}}, "channels");
  refused("ring", {{"channels", 2}}, "inside_gb_per_s");
  refused("nvlinks", 18, "nvlink");
  refused("nvlink", false, "nvlink_sharp");
}

TEST_CASE("a bad collective table is refused with place and remedy") {
  const auto refused = [](const char* key, nlohmann::json value, const char* part) {
    nlohmann::json json = h100_json();
    nlohmann::json table{{"collective", "all_reduce"}, {"ranks", 8}, {"bytes", {8, 16}}, {"us", {1, 2}}};
    table[key] = std::move(value);
    json["collective_tables"] = nlohmann::json::array({table});
    CAPTURE(key);
    check_refused<SpecError>([&] { parse_cluster(json.dump(), "c.json"); }, "c.json", part);
  };
  refused("collective", "all_reduc", "all_reduce");
  refused("ranks", 1, "2 or more");
  refused("nodes", 9, "nodes");
  refused("us", {1}, "2 times");
  refused("us", {1, 0}, "above 0");
  refused("us", {1, "2"}, "above 0");
  refused("bytes", {16, 8}, "ascend");
  refused("bytes", {0, 8}, "above 0");
  refused("bytes", nlohmann::json::array(), "times");
}

}  // namespace plumb::test
