#include "planner/partition/piper_input.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/refusal.h"
#include "tests/shared_folder.h"

namespace plumb::test {
namespace {

using nlohmann::json;

json way(const std::string& id, double seconds, double weights) {
  return {{"id", id},           {"timePerSample", seconds}, {"parameterSize", weights},
          {"memoryUsageA", 10}, {"memoryUsageB", 20},       {"syncTimeFw", json::object()}};
}

json piper() {
  json first = way("vanilla", 1, 5), wide = way("vanilla", 0.5, 2);
  wide["syncTimeBw"] = {{"8", 3}};
  return {
      {"maxDevices", 4},
      {"maxMemoryPerDevice", 100},
      {"bandwidth", 10},
      {"mbsInBatch", 6},
      {"nodes", {{{"id", 7}, {"TMPCs", {{"2", {wide}}, {"1", {first}}}}}, {{"id", 8}, {"TMPCs", {{"1", {first}}}}}}},
      {"edges", {{{"sourceId", 7}, {"destId", 8}, {"communicationCost", 9}}}}};
}

}  // namespace

TEST_CASE("an input of Piper is a graph whose nodes have ways, those on one device first") {
  const PiperInput read = parse_piper_input(piper().dump(), "p.json");
  REQUIRE(num_vertices(read.graph) == 2);
  REQUIRE(read.graph[0].ways.size() == 2);
  CHECK(read.graph[0].ways[0].seconds.count() == 1);
  CHECK(read.graph[0].ways[1].tensor == 2);
  CHECK(read.graph[0].output_bytes == 9);
  const ProfiledEdge& edge = read.graph[*edges(read.graph).first];
  CHECK(edge.source_bytes == std::vector<double>{0, 3});
  CHECK(edge.target_bytes == std::vector<double>{0});
  CHECK(read.devices == 4);
  CHECK(read.microbatches == 6);
}

TEST_CASE("an input of Piper that is wrong is refused by its place") {
  const auto refused = [](const json& wrong, const std::string& place, const std::string& part) {
    check_refused<SpecError>([&] { parse_piper_input(wrong.dump(), "p.json"); }, place, part);
  };
  json wrong = piper();
  wrong["nodes"] = json::array();
  wrong["edges"] = json::array();
  refused(wrong, "p.json", "no node");
  wrong = piper();
  wrong["nodes"][0]["TMPCs"].erase("1");
  refused(wrong, "nodes[0].TMPCs", "no way on one device");
  wrong = piper();
  wrong["nodes"][0]["TMPCs"]["1"][0]["timePerSample"] = -1;
  refused(wrong, "timePerSample", "0 or more");
  wrong = piper();
  wrong["nodes"][0]["TMPCs"]["1"].push_back(way("other", 2, 6));
  refused(wrong, "nodes[0].TMPCs", "differ in parameterSize");
  wrong = piper();
  wrong["edges"].push_back({{"sourceId", 8}, {"destId", 7}, {"communicationCost", 1}});
  refused(wrong, "p.json", "cycle");
  wrong["edges"].push_back({{"sourceId", 8}, {"destId", 9}, {"communicationCost", 1}});
  refused(wrong, "edges[2].destId", "no such node");
}

TEST_SUITE("oracle") {
  TEST_CASE("Piper's own inputs can be read") {
    for (const char* name : {"bert32a100", "gnmt", "resnet"}) {
      CAPTURE(name);
      const std::optional<std::string> text = shared_text(std::string("oracles/piper/") + name + ".json");
      if (!text) return;
      CHECK(num_vertices(parse_piper_input(*text, name).graph) > 30);
    }
  }
}

}  // namespace plumb::test
