#include "traces/draw/line_chart.h"

#include <doctest/doctest.h>

namespace plumb::test {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

const LineChart kTwoLines{.title = "step time",
                          .x_label = "bandwidth",
                          .y_label = "step time, s",
                          .x_values = {"10", "20", "40"},
                          .series = {{"pp=4", {4, 3, 2}}, {"pp=8 & more", {5, std::nullopt, 1}}}};

}  // namespace

TEST_CASE("ticks are round, and at most ten") {
  CHECK(tick_distance(10) == 1);
  CHECK(tick_distance(11) == 2);
  CHECK(tick_distance(43) == 5);
  CHECK(tick_distance(0.07) == doctest::Approx(0.01));
}

TEST_CASE("a chart names its axes, its values and its lines") {
  const std::string svg = line_chart_svg(kTwoLines);
  for (const char* text :
       {">step time<", ">bandwidth<", ">step time, s<", ">10<", ">40<", ">pp=4<", ">pp=8 &amp; more<"})
    CHECK_MESSAGE(svg.find(text) != std::string::npos, text);
  CHECK(count_of(svg, "<circle") == 5);  // a mark for each value that is there
  CHECK(svg == line_chart_svg(kTwoLines));
}

TEST_CASE("a chart is wide enough for its names") {
  LineChart chart = kTwoLines;
  const auto width_of = [](const std::string& svg) { return std::stod(svg.substr(svg.find("viewBox=\"0 0 ") + 13)); };
  const double width = width_of(line_chart_svg(chart));
  chart.series.front().name = std::string(80, 'x');
  CHECK(width_of(line_chart_svg(chart)) > width + 200);
}

TEST_CASE("a value that lacks interrupts its line") {
  const std::string svg = line_chart_svg(kTwoLines);
  const std::string path = svg.substr(svg.rfind("<path"));
  CHECK(count_of(path.substr(0, path.find("fill")), "M") == 2);
}

TEST_CASE("numbers stand at their places, and words side by side") {
  const auto marks_at = [](std::vector<std::string> values) {
    const std::string svg = line_chart_svg({.x_values = std::move(values), .series = {{"", {1, 1, 1}}}});
    std::vector<double> places;
    for (std::size_t at = svg.find("cx=\""); at != std::string::npos; at = svg.find("cx=\"", at + 1))
      places.push_back(std::stod(svg.substr(at + 4)));
    return places;
  };
  const auto middle = [&](const std::vector<std::string>& values) {
    const std::vector<double> places = marks_at(values);
    return (places[1] - places[0]) / (places[2] - places[0]);
  };
  CHECK(middle({"1", "2", "5"}) == doctest::Approx(0.25).epsilon(0.01));    // linear
  CHECK(middle({"1", "10", "100"}) == doctest::Approx(0.5).epsilon(0.01));  // logarithmic
  CHECK(middle({"a100", "h100", "b200"}) == doctest::Approx(0.5).epsilon(0.01));
}

}  // namespace plumb::test
