#include "traces/draw/draw_svg.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/simulate.h"
#include "tests/traces/support.h"

namespace plumb::test {
namespace {

Timeline simulated_timeline(std::string_view name, int p, int m, int v = 1) {
  const Schedule lowered = lower(make_schedule(name, {.ranks = p, .microbatches = m, .chunks = v}));
  return simulate(lowered, chunk_cost_table(static_cast<int>(lowered.stages.size()), {})).timeline;
}

}  // namespace

TEST_CASE("every compute action that lasts is a box with its name, messages are not drawn") {
  const std::string svg = draw_svg({simulated_timeline("1f1b", 2, 3)});
  CHECK(count(svg, "<title>") == 2 * 3 * 2);  // optimizer steps of no duration have no box
  CHECK(svg.find("<title>1B2 2 s</title>") != std::string::npos);
  CHECK(svg.find("SEND") == std::string::npos);
}

TEST_CASE("panels share one time axis: a faster schedule's rows are shorter") {
  const std::string svg = draw_svg({simulated_timeline("1f1b", 4, 8), simulated_timeline("interleaved", 4, 8, 2)});
  CHECK(count(svg, "text-anchor=\"end\"") == 8);
  // 1F1B takes (8+3)*3 = 33 s over the whole width of 914; interleaved at equal chunk costs takes 8*2*3 + 3*3 = 57 s.
  CHECK(count(svg, "width=\"914.00\"") == 4);
  CHECK(count(svg, "width=\"529.16\"") == 4);
}

TEST_CASE("an overlapped pair is one box of two halves, and the legend says so") {
  const std::string svg = draw_svg({simulated_timeline("dualpipe", 4, 8)});
  CHECK(count(svg, "height=\"13\"") > 0);
  CHECK(count(svg, "height=\"13\"") % 2 == 0);
  CHECK(svg.find(">overlapped pair<") != std::string::npos);
  CHECK(draw_svg({simulated_timeline("1f1b", 2, 3)}).find(">overlapped pair<") == std::string::npos);
}

TEST_CASE("the legend has the operations and chunks that are there") {
  const std::string svg = draw_svg({simulated_timeline("interleaved", 2, 4, 3)});
  CHECK(svg.find(">chunk 2<") != std::string::npos);
  CHECK(svg.find(">chunk 3<") == std::string::npos);
  CHECK(svg.find(">W weight gradient<") == std::string::npos);
  CHECK(svg.find(">idle<") != std::string::npos);
}

TEST_CASE("a number is small enough for its box, and left out where it would be unreadable") {
  const std::string wide = draw_svg({simulated_timeline("gpipe", 1, 4)});
  CHECK(count(wide, "font-size=\"11.0\"") == 8);
  CHECK(count(draw_svg({simulated_timeline("gpipe", 1, 400)}), "text-anchor=\"middle\" font-size") == 0);
}

TEST_CASE("titles are escaped and the document closes") {
  Timeline timeline = simulated_timeline("gpipe", 1, 1);
  timeline.title = "a<b & c";
  const std::string svg = draw_svg({timeline});
  CHECK(svg.find("a&lt;b &amp; c") != std::string::npos);
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("a timeline without spans is an empty picture, not a crash") {
  CHECK(draw_svg({Timeline{}}).ends_with("</svg>\n"));
  CHECK(draw_svg({}).ends_with("</svg>\n"));
}

}  // namespace plumb::test
