#include "planner/spec/cluster_spec.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
TEST_CASE("an NVL72 is one node of 72, a mesh says so in its file") {
  const ClusterSpec rack = preset_cluster("gb200-nvl72:144");
  CHECK(rack.devices_per_node == 72);
  CHECK(node_count(rack) == 2);
  CHECK(node_count(preset_cluster("gb200-nvl72:36")) == 1);
  CHECK(preset_cluster("mi300x").wiring.hub == NodeHub::kMesh);
  CHECK(preset_cluster("rtx4090").wiring.hub == NodeHub::kPcie);
  CHECK(!preset_cluster("v100").device.peak_flops_per_second.contains(Precision::kBf16));
}

TEST_CASE("units of the JSON form become SI") {
  const ClusterSpec h100 = preset_cluster("h100:16");
  CHECK(h100.devices == 16);
  CHECK(node_count(h100) == 2);
  CHECK(h100.device.peak_flops_per_second.at(Precision::kBf16) == doctest::Approx(989e12));
  CHECK(h100.device.memory_bytes == std::int64_t{80} << 30);
  CHECK(h100.device.memory_bytes_per_second == doctest::Approx(3.35e12));
  CHECK(h100.node_link->bytes_per_second == doctest::Approx(450e9));
  CHECK(h100.network->latency.count() == doctest::Approx(14e-6));
}

TEST_CASE("where no usable memory is known the marketed bytes count, and the preset says so") {
  CHECK(static_cast<double>(preset_cluster("h200").device.memory_bytes) == doctest::Approx(141e9).epsilon(1e-4));
  CHECK(preset_cluster("h200").note.find("141") != std::string::npos);
  CHECK(static_cast<double>(preset_cluster("b200").device.memory_bytes) == doctest::Approx(180e9).epsilon(1e-4));
}

TEST_CASE("a cluster survives its JSON form, sources included") {
  for (const std::string& preset : preset_names("clusters")) {
    const auto json = to_json(preset_cluster(preset));
    CHECK(to_json(parse_cluster(json.dump(), "again")).dump() == json.dump());
    CHECK(json["device"]["memory_gib"].contains("source"));
  }
  ClusterSpec sampled = round_cluster(4);
  sampled.samples = {{.kernel = "gemm",
                      .shape = {1, 2, 3, 1, 0},
                      .median = Seconds{1e-6},
                      .fastest = Seconds{9e-7},
                      .slowest = Seconds{2e-6},
                      .repeats = 5,
                      .busy_ranks = 2}};
  const auto json = to_json(sampled);
  CHECK(to_json(parse_cluster(json.dump(), "again")).dump() == json.dump());
}

TEST_CASE("devices fill their nodes, or stay below one") {
  const ClusterSpec cluster = round_cluster(4);
  CHECK(resize(cluster, 3).devices == 3);
  CHECK(node_count(resize(cluster, 12)) == 3);
  check_refused<SpecError>([&] { resize(cluster, 6); }, "round", "give 4 or 8");
  check_refused<SpecError>([&] { resize(cluster, 0); }, "round", "1 or more");
  check_refused<SpecError>([&] { resize(cluster, 720'720); }, "720720 devices", "at most 262144");
  ClusterSpec alone = cluster;
  alone.network.reset();
  check_refused<SpecError>([&] { resize(alone, 8); }, "round", "at most 4");
}

TEST_CASE("a domain of several hosts gets as many devices as fill each domain alike") {
  ClusterSpec rack = round_cluster(72);
  rack.devices_per_node = 72;
  rack.wiring.nics_per_node = 36;
  const ClusterSpec cut = resize(rack, 256);
  CHECK(cut.devices_per_node == 64);
  CHECK(nic_count(cut) == 32);
  CHECK(node_count(cut) == 4);
  CHECK(resize(rack, 144).devices_per_node == 72);
  CHECK(resize(rack, 36).devices_per_node == 72);
  check_refused<SpecError>([&] { resize(rack, 257); }, "257 devices do not fill nodes of 72", "give 216 or 288");
}

TEST_CASE("a cluster is named by preset and devices") {
  CHECK(parse_cluster_name("h100:16").preset == "h100");
  CHECK(parse_cluster_name("h100:16").devices == 16);
  CHECK(!parse_cluster_name("h100").devices);
  for (const char* bad : {"h100:", "h100:x", "h100:0", "h100:-8", "h100:8x"}) {
    check_refused<SpecError>([&] { parse_cluster_name(bad); }, "h100", "PRESET:DEVICES");
  }
}

TEST_CASE("a bad cluster file is refused with place and remedy") {
  using nlohmann::json;
  const json good = json::parse(source_text("tools/specs/clusters/h100.json"));
  const auto refused = [&](const char* pointer, json value, const char* part) {
    json bad = good;
    const json::json_pointer at(pointer);
    if (value.is_discarded())
      bad.at(at.parent_pointer()).erase(at.back());
    else
      bad[at] = std::move(value);
    CAPTURE(pointer);
    check_refused<SpecError>([&] { parse_cluster(bad.dump(), "c.json"); }, "c.json", part);
  };
  const json gone(json::value_t::discarded);
  for (const char* pointer :
       {"/device", "/node", "/device/peak_tflops", "/device/memory_gib", "/device/memory_bandwidth_gb_per_s",
        "/device/gemm_efficiency", "/device/memory_efficiency", "/device/attention_efficiency", "/node/devices",
        "/node/bandwidth_gb_per_s", "/network/bandwidth_gb_per_s", "/name", "/device/name"}) {
    refused(pointer, gone, json::json_pointer(pointer).back().c_str());
    refused(pointer, json::array(), json::json_pointer(pointer).back().c_str());
  }
  for (const char* pointer : {"/device/memory_gib", "/device/memory_bandwidth_gb_per_s", "/device/gemm_efficiency",
                              "/device/peak_tflops/bf16", "/device/compute_units", "/device/gemm_tile", "/node/devices",
                              "/node/bandwidth_gb_per_s", "/network/bandwidth_gb_per_s", "/devices"}) {
    refused(pointer, 0, json::json_pointer(pointer).back().c_str());
    refused(pointer, -1, json::json_pointer(pointer).back().c_str());
  }
  for (const char* pointer :
       {"/node/latency_us", "/network/latency_us", "/device/reserved_gib", "/device/kernel_fixed_us"}) {
    refused(pointer, -1, json::json_pointer(pointer).back().c_str());
  }
  refused("/device/gemm_efficiency", 1.2, "gemm_efficiency");
  refused("/device/reserved_gib", 90, "reserved_gib");
  refused("/device/memory_gb", 80, "memory_gib");
  refused("/network/bandwith_gb_per_s", 1, "bandwidth_gb_per_s");
  refused("/device/memory_gib", {{"value", 80}, {"origin", "x"}}, "origin");
  refused("/device/peak_tflops", {{"fp64", 1.0}}, "fp");
  refused("/devices", 12, "16");
  refused("/devices", 5e9, "at most");
  refused("/device/memory_gib", 1e300, "nothing here is so large");
  const auto sample = [](std::string kernel, std::vector<std::int64_t> shape, double seconds) {
    return json::array({{{"kernel", kernel}, {"shape", shape}, {"median_s", seconds}}});
  };
  refused("/kernel_samples", sample("gem", {1, 1, 1, 1, 0}, 1), "gem");
  refused("/kernel_samples", sample("gemm", {1, 1, 1}, 1), "shape");
  refused("/kernel_samples", sample("gemm", {1, 1, -1, 1, 0}, 1), "shape");
  refused("/kernel_samples", sample("gemm", {1, 1, 1, 1, 0}, 0), "median_s");
  const std::string text = good.dump();
  check_refused<SpecError>([&] { parse_cluster(text.substr(0, text.size() - 5), "c.json"); }, "c.json", "line");
}

}  // namespace plumb::test
