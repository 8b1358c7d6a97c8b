#include "planner/spec/preset_sources.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("every number of a cluster preset has a source, and a preset has its file's name") {
  CHECK(preset_names("clusters").size() >= 23);
  for (const std::string& preset : preset_names("clusters")) {
    CAPTURE(preset);
    const std::string text = source_text("tools/specs/clusters/" + preset + ".json");
    CHECK(parse_cluster_preset(text, preset).name == preset);
  }
}

TEST_CASE("a preset number without source is refused by its name, in a user's own file it is not") {
  using nlohmann::json;
  const json good = json::parse(source_text("tools/specs/clusters/h100.json"));
  for (const char* path : {"device.peak_tflops.bf16", "device.memory_gib", "device.attention.flash2.forward",
                           "node.devices", "network.bandwidth_gb_per_s", "nccl.simple_launch_us"}) {
    CAPTURE(path);
    std::string pointer = std::string("/") + path;
    std::ranges::replace(pointer, '.', '/');
    json plain = good, empty = good;
    plain[json::json_pointer(pointer)] = plain[json::json_pointer(pointer)]["value"];
    empty[json::json_pointer(pointer)]["source"] = "";
    check_refused<SpecError>([&] { parse_cluster_preset(plain.dump(), "h100.json"); }, "h100.json",
                             std::string(path) + " has no source");
    check_refused<SpecError>([&] { parse_cluster_preset(empty.dump(), "h100.json"); }, "h100.json",
                             std::string(path) + " has no source");
    CHECK(to_json(parse_cluster(plain.dump(), "mine.json"))["name"] == "h100");
  }
}

}  // namespace plumb::test
