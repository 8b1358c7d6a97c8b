#include "planner/spec/cluster_sites.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

const LinkSpec kLinkOfSites{.bytes_per_second = 10e9, .latency = Seconds{5e-3}};

ClusterSpec two_kinds(const std::optional<LinkSpec>& between = {}) {
  return joined_sites({preset_cluster("h100:16"), preset_cluster("a100:8")}, between);
}

}  // namespace

TEST_CASE("sites are one cluster of all their devices, whose pipeline ranks lie on them in order") {
  const ClusterSpec both = two_kinds();
  CHECK(both.name == "h100+a100");
  CHECK(both.devices == 24);
  CHECK(node_count(both) == 3);
  CHECK(devices_text(both) ==
        "16 x " + preset_cluster("h100").device.name + " + 8 x " + preset_cluster("a100").device.name);
  const Layout layout{.data = 2, .tensor = 4, .pipeline = 3};
  CHECK(site_of_rank(both, layout, 0) == 0);
  CHECK(site_of_rank(both, layout, 1) == 0);
  CHECK(site_of_rank(both, layout, 2) == 1);
  CHECK(device_of_rank(both, layout, 2) == preset_cluster("a100").device);
  CHECK(site_alone(both, 0).name == "h100");
  CHECK(site_alone(both, 0).devices == 16);
  CHECK(site_alone(both, 1).devices == 8);
  CHECK(all_on_site(both, 1).devices == 24);
  CHECK(all_on_site(both, 1).device == preset_cluster("a100").device);
}

TEST_CASE("sites survive the JSON form, with their link") {
  const ClusterSpec both = two_kinds(kLinkOfSites);
  const auto json = to_json(both);
  const ClusterSpec read = cluster_from_json(nlohmann::json(json), "cluster");
  CHECK(to_json(read) == json);
  CHECK(read.devices == 24);
  CHECK(read.further_sites.front().device == preset_cluster("a100").device);
  CHECK(read.between_sites == kLinkOfSites);
  nlohmann::json fewer = json;
  fewer["devices"] = 8;
  CHECK(refusal([&] { (void)cluster_from_json(fewer, "cluster"); }).find("count those of all sites") !=
        std::string::npos);
}

TEST_CASE("senders share the link between sites; without one the slower network is theirs") {
  const LinkCost shared = site_link(two_kinds(kLinkOfSites), 0, 1, 8);
  CHECK(shared.bytes_per_second == doctest::Approx(10e9 / 8));
  CHECK(shared.latency == Seconds{5e-3});
  const LinkSpec h100 = *preset_cluster("h100").network, a100 = *preset_cluster("a100").network;
  const LinkCost open = site_link(two_kinds(), 1, 0, 8);
  CHECK(open.bytes_per_second ==
        doctest::Approx(std::min(h100.bytes_per_second * h100.efficiency, a100.bytes_per_second * a100.efficiency)));
  CHECK(open.latency == std::max(h100.latency, a100.latency));
}

TEST_CASE("peaks are summed, money and power are the mean device's") {
  ClusterSpec h100 = preset_cluster("h100:16"), a100 = preset_cluster("a100:8");
  h100.operation = {.usd_per_device_hour = 3, .idle_watts = 100, .busy_watts = 700, .pue = 1.2};
  a100.operation = {.usd_per_device_hour = 1.5, .pue = 1.2};
  const ClusterSpec both = joined_sites({h100, a100}, {});
  CHECK(peak_flops_per_second(both, Precision::kBf16) == doctest::Approx(16 * 989e12 + 8 * 312e12));
  const OperatingSpec mean = mean_operation(both);
  CHECK(*mean.usd_per_device_hour == doctest::Approx(2.5));
  CHECK(!mean.busy_watts);  // one site does not know it
  CHECK(mean.pue == doctest::Approx(1.2));
  CHECK(largest_device(both).memory_bytes == h100.device.memory_bytes);
}

TEST_CASE(
    "a layout whose pipeline ranks lie on two sites is refused with the remedy, and so is what hosts would hold") {
  const ClusterSpec both = two_kinds();
  CHECK(!site_conflict(both, {.data = 1, .tensor = 8, .pipeline = 3}));
  CHECK(site_conflict(both, {.data = 3, .tensor = 4, .pipeline = 2})->find("divides 16") != std::string::npos);
  const Layout offloading{.tensor = 8, .pipeline = 3, .offload = {.optimizer = true}};
  CHECK(site_conflict(both, offloading)->find("offload=none") != std::string::npos);
  CHECK(!site_conflict(preset_cluster("h100:16"), {.data = 16, .offload = {.optimizer = true}}));
}

TEST_CASE("sites that cannot be joined are refused") {
  const ClusterSpec h100 = preset_cluster("h100:16"), a100 = preset_cluster("a100:4");
  CHECK(refusal([&] { (void)joined_sites({a100, h100}, {}); }).find("put it first") != std::string::npos);
  ClusterSpec alone = a100;
  alone.network.reset();
  CHECK(refusal([&] { (void)joined_sites({h100, alone}, {}); }).find("as in @10") != std::string::npos);
  CHECK(joined_sites({h100, alone}, kLinkOfSites).devices == 20);
  const ClusterSpec both = joined_sites({h100, a100}, {});
  CHECK(refusal([&] { (void)joined_sites({h100, both}, {}); }).find("beside it") != std::string::npos);
  CHECK(refusal([&] { (void)resize(both, 32); }).find("give each site its own") != std::string::npos);
  CHECK(resize(both, 20).devices == 20);
}

}  // namespace plumb::test
