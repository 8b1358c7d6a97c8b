#include "traces/draw/difference_chart.h"

#include <doctest/doctest.h>

#include "tests/traces/support.h"

namespace plumb::test {

TEST_CASE("a row has its bar, its range and its value; panels without rows are left out") {
  const std::string svg = difference_chart_svg(
      "errors", "%", 50, {{"step <time>", {{"one", -5, {{-20, 10}}, "3 rows"}, {"two", 10, {}, ""}}}, {"memory", {}}});
  CHECK(svg.find("step &lt;time&gt;") != std::string::npos);
  CHECK(svg.find("memory") == std::string::npos);
  CHECK(svg.find("-5.0 %, 3 rows") != std::string::npos);
  CHECK(count(svg, "height=\"10\"") == 2);
  // The axis reaches to 20 on 165 units: the bar of -5 is a quarter of that, the bar of 10 a half.
  CHECK(svg.find("width=\"41.2\"") != std::string::npos);
  CHECK(svg.find("width=\"82.5\"") != std::string::npos);
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("a range beyond the axis is cut there, with an arrow") {
  const std::string svg = difference_chart_svg("errors", "%", 50, {{"step", {{"one", 5, {{-10, 400}}, ""}}}});
  CHECK(count(svg, "<path") == 1);
  CHECK(difference_chart_svg("errors", "%", 500, {{"step", {{"one", 5, {{-10, 400}}, ""}}}}).find("<path") ==
        std::string::npos);
}

}  // namespace plumb::test
