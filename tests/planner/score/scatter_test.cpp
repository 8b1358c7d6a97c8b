#include "planner/score/scatter.h"

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace plumb::test {
namespace {

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("each point is a circle, each series with points has a line of the legend") {
  const std::string svg = scatter_svg({{"one", {{1, 1.1}, {10, 9}}}, {"empty", {}}, {"a < b", {{2, 2}}}}, "title", "s");
  CHECK(count(svg, "r=\"2.6\"") == 3);
  CHECK(count(svg, "r=\"5\"") == 2);
  CHECK(svg.find("one (2)") != std::string::npos);
  CHECK(svg.find("empty") == std::string::npos);
  CHECK(svg.find("a &lt; b (1)") != std::string::npos);
}

TEST_CASE("a prediction that is exact lies on the diagonal") {
  // The decade from 1 to 10 has 520 units: 1 is at the left and at the bottom.
  const std::string svg = scatter_svg({{"one", {{1, 1}, {10, 10}}}}, "title", "s");
  CHECK(svg.find("<circle cx=\"70.0\" cy=\"560.0\" r=\"2.6\"") != std::string::npos);
  CHECK(svg.find("<circle cx=\"590.0\" cy=\"40.0\" r=\"2.6\"") != std::string::npos);
  CHECK(svg.find("measured, s") != std::string::npos);
}

TEST_CASE("no two of 48 series look alike: each round of the colours has a mark of its own") {
  std::vector<ScatterSeries> series;
  for (int i = 0; i < 48; ++i) series.push_back({std::to_string(i), {{2, 2}}});
  const std::string svg = scatter_svg(series, "title", "s");
  CHECK(count(svg, "<circle") == 2 * 24);  // discs and rings, a point and a line of the legend each
  CHECK(count(svg, "fill=\"none\" stroke=\"#4e79a7\"") == 2);
  CHECK(count(svg, "<path") == 2 * 12);
  CHECK(count(svg, "<rect") == 2 * 12 + 2);  // and the background and the frame
}

TEST_CASE("without points there is a picture all the same") {
  CHECK(scatter_svg({}, "title", "s").find("</svg>") != std::string::npos);
}

}  // namespace plumb::test
