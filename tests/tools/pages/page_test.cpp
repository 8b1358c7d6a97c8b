#include "tools/pages/page.h"

#include <doctest/doctest.h>

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

TEST_CASE("bars and points keep their values") {
  Page page;
  add_bars(page, "Memory", {{.name = "parameters"}, {.name = "own", .color = "#123456"}}, {{"rank 0", {1, 2}}}, "B", 3);
  CHECK(last_block(page)["kinds"][1]["color"] == "#123456");
  CHECK(last_block(page)["bars"][0]["values"][1] == 2);
  CHECK(last_block(page)["limit"] == 3);
  add_points(page, "Front", {"memory", "B"}, {"step", "s"},
             {{.name = "front", .points = {{1, 2, "dp=8"}}, .joined = true}, {.name = "none"}});
  CHECK(last_block(page)["series"].size() == 1);  // what has no points is left out
  CHECK(last_block(page)["series"][0]["points"][0]["label"] == "dp=8");
}

TEST_CASE("differences have a range or none") {
  Page page;
  add_differences(page, "Errors", "%", {});
  CHECK(page.blocks.empty());
  add_differences(page, "Errors", "%", {{"one", -2, {{-5, 1}}, "3 rows"}, {"two", 3, {}, ""}});
  CHECK(last_block(page)["bars"][0]["low"] == -5);
  CHECK(last_block(page)["bars"][1]["high"].is_null());
}

}  // namespace plumb::test
