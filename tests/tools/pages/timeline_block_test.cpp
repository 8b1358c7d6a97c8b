#include "tools/pages/timeline_block.h"

#include <doctest/doctest.h>

#include "schedules/generators/generators.h"
#include "schedules/passes/lower.h"
#include "simulator/simulate.h"

namespace plumb::test {
namespace {

Timeline two_ranks() {
  const Schedule lowered = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 3}));
  return simulate(lowered, chunk_cost_table(2, {.hop_latency = Seconds{0.5}})).timeline;
}

}  // namespace

TEST_CASE("a timeline has a lane for what each rank computes, and others for what overlaps it") {
  Page page;
  add_timeline(page, "Timeline", two_ranks());
  const nlohmann::ordered_json& block = page.blocks.back();
  CHECK(block["end"].get<double>() > 0);
  CHECK(block["stages"].size() == 2);
  REQUIRE(block["lanes"].size() == 4);
  CHECK(block["lanes"][0]["name"] == "rank 0");
  CHECK(block["lanes"][1]["name"] == "send");
  CHECK(block["lanes"][2]["name"] == "rank 1");
  // Three forwards and three backwards of 8 bytes each in base64, without the step that takes no time.
  CHECK(block["lanes"][0]["start"].get<std::string>().size() == 6 * 8 / 3 * 4);
}

TEST_CASE("two timelines stand below each other, rank by rank") {
  const Timeline one = two_ranks();
  Page page;
  add_timelines(page, "Both", {{.name = "predicted", .timeline = &one}, {.name = "measured", .timeline = &one}});
  const nlohmann::ordered_json& lanes = page.blocks.back()["lanes"];
  REQUIRE(lanes.size() == 8);
  CHECK(lanes[0]["name"] == "rank 0 predicted");
  CHECK(lanes[2]["name"] == "rank 0 measured");
  CHECK(lanes[4]["name"] == "rank 1 predicted");
}

}  // namespace plumb::test
