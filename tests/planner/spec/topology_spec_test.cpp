#include "planner/spec/topology_spec.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

using nlohmann::json;

json two_on_a_switch() {
  return json::parse(R"({"nodes": ["a", "b", "switch"], "devices": ["b", "a"],
    "links": [{"from": "a", "to": "switch", "bandwidth_gb_per_s": 50, "latency_us": 2},
              {"from": "switch", "to": "b", "bandwidth_gb_per_s": 25}]})");
}

std::string refused(const json& document) {
  return refusal([&] { topology_from_json(document, "net.json"); });
}

}  // namespace

TEST_CASE("a link carries both ways at its full rate, and devices hang where they are said to") {
  const Topology topology = topology_from_json(two_on_a_switch(), "net.json");
  CHECK(topology.devices == std::vector<int>{1, 0});
  REQUIRE(topology.links.size() == 4);
  CHECK(topology.links[0].name == "a->switch");
  CHECK(topology.links[1].name == "switch->a");
  CHECK(topology.links[1].bytes_per_second == 50e9);
  CHECK(topology.links[1].latency.count() == doctest::Approx(2e-6));
  CHECK(topology.links[2].latency == Seconds{0});
  CHECK(shortest_path(topology, 0, 1) == std::vector<int>{3, 1});
}

TEST_CASE("a link may carry one way only") {
  json document = two_on_a_switch();
  document["links"][0]["both_ways"] = false;
  const Topology topology = topology_from_json(document, "net.json");
  CHECK(topology.links.size() == 3);
  CHECK(refusal([&] { shortest_path(topology, 0, 1); }) ==
        "no links lead from device 0 (b) to device 1 (a), which exchange data: connect them");
}

TEST_CASE("what cannot be wired is refused with its place") {
  json document = two_on_a_switch();
  document["links"][0]["bandwidth_gb_per_s"] = 0;
  CHECK(refused(document).find("net.json: links[0].bandwidth_gb_per_s") != std::string::npos);
  document["links"][0]["bandwidth_gb_per_s"] = -1;
  CHECK(refused(document).find("net.json: links[0].bandwidth_gb_per_s") != std::string::npos);
  document = two_on_a_switch();
  document["links"][1]["from"] = "swich";
  CHECK(refused(document).find("there is no node \"swich\": did you mean \"switch\"?") != std::string::npos);
  document = two_on_a_switch();
  document["devices"] = {"a", "c"};
  CHECK(refused(document).find("there is no node \"c\"") != std::string::npos);
  document["devices"] = {"a", "a"};
  CHECK(refused(document) == "net.json: devices 0 and 1 are both vertex a: give each its own");
  document = two_on_a_switch();
  document["nodes"] = {"a", "b", "a"};
  CHECK(refused(document).find("\"a\" is named twice") != std::string::npos);
  document = two_on_a_switch();
  document["links"][0]["to"] = "a";
  CHECK(refused(document).find("leads from a to itself") != std::string::npos);
  document = two_on_a_switch();
  document["links"][0]["bandwith_gb_per_s"] = 1;
  CHECK(refused(document).find("bandwidth_gb_per_s") != std::string::npos);
  document = two_on_a_switch();
  document["devices"] = json::array();
  CHECK(refused(document).find("one or more names") != std::string::npos);
}
}  // namespace plumb::test
