#include "tools/pages/page.h"

#include <doctest/doctest.h>

#include "schedules/generators/generators.h"
#include "schedules/passes/lower.h"
#include "simulator/simulate.h"

namespace plumb::test {
namespace {

const nlohmann::ordered_json& last_block(const Page& page) {
  return page.blocks.back();
}

}  // namespace

TEST_CASE("a page holds its data and all that draws it") {
  Page page{.title = "a <b> & c"};
  add_verdict(page, "done </script>", false);
  const std::string html = to_html(page);
  CHECK(html.find("<title>a &lt;b&gt; &amp; c</title>") != std::string::npos);
  CHECK(html.find("done <\\/script>") != std::string::npos);
  CHECK(html.find("function drawTimeline") != std::string::npos);
  for (const char* foreign : {"src=", "@import", "fetch(", "XMLHttpRequest"})
    CHECK(html.find(foreign) == std::string::npos);
}

TEST_CASE("a timeline has a lane for what each rank computes, and others for what overlaps it") {
  const Schedule lowered = lower(make_schedule("1f1b", {.ranks = 2, .microbatches = 3}));
  Page page;
  add_timeline(page, "Timeline", simulate(lowered, chunk_cost_table(2, {.hop_latency = Seconds{0.5}})).timeline);
  const nlohmann::ordered_json& block = last_block(page);
  CHECK(block["end"].get<double>() > 0);
  CHECK(block["stages"].size() == 2);
  REQUIRE(block["lanes"].size() == 4);
  CHECK(block["lanes"][0]["name"] == "rank 0");
  CHECK(block["lanes"][1]["name"] == "send");
  CHECK(block["lanes"][2]["name"] == "rank 1");
  // Three forwards and three backwards of 8 bytes each in base64, without the step that takes no time.
  CHECK(block["lanes"][0]["start"].get<std::string>().size() == 6 * 8 / 3 * 4);
}

TEST_CASE("bars and points keep their values") {
  Page page;
  add_bars(page, "Memory", {{.name = "parameters"}, {.name = "own", .color = "#123456"}}, {{"rank 0", {1, 2}}}, "B", 3);
  CHECK(last_block(page)["kinds"][1]["color"] == "#123456");
  CHECK(last_block(page)["bars"][0]["values"][1] == 2);
  CHECK(last_block(page)["limit"] == 3);
  add_points(page, "Front", {"memory", "B"}, {"step", "s"},
             {{.name = "front", .points = {{1, 2, "dp=8"}}, .joined = true}});
  CHECK(last_block(page)["series"][0]["points"][0]["label"] == "dp=8");
}

}  // namespace plumb::test
