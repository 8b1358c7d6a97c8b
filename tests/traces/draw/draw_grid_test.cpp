#include "traces/draw/draw_grid.h"

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "tests/traces/support.h"

namespace plumb::test {
namespace {

Schedule faulty() {
  Schedule schedule = parse_schedule("0F0 0F1 0B0 0B1\n1B0 1F0 1F1 1B1");
  schedule.name = "a <test>";
  return schedule;
}

}  // namespace

TEST_CASE("the grid has a row a rank, and marks the faulty cell") {
  CHECK(draw_grid(faulty(), validate(faulty())) ==
        "a <test>: 2 ranks, 2 stages, 2 micro-batches\n"
        "rank 0 │  0F0  0F1  0B0  0B1\n"
        "rank 1 │ >1B0< 1F0  1F1  1B1\n"
        "rank 1, position 0: 1B0 stands ahead of its forward 1F0 (position 1); list that first (order)\n");
}

TEST_CASE("a grid wider than the terminal shows the columns around the earliest fault") {
  Schedule schedule = make_schedule("1f1b", {.ranks = 2, .microbatches = 50});
  std::swap(schedule.ranks[1][60], schedule.ranks[1][61]);
  const std::vector<Violation> violations = validate(schedule);
  REQUIRE(violations.size() == 1);
  const std::string grid = draw_grid(schedule, violations, {.width = 60});
  CHECK(grid.find(">1B30<") != std::string::npos);
  CHECK(count(grid, "…") == 4);
  CHECK(draw_grid(schedule, violations, {.width = 60, .color = true}).find("\x1b[31;1m>1B30<") != std::string::npos);
}

TEST_CASE("many violations are counted, not all spelt out") {
  std::string row = "microbatches: 1\n0F0 0B0";
  for (int i = 0; i < 20; ++i) row += " 0F0";  // each is one too many
  const Schedule schedule = parse_schedule(row);
  CHECK(draw_grid(schedule, validate(schedule)).ends_with("\n12 more violations\n"));
}

TEST_CASE("the SVG grid has a cell an action and the violation as the tooltip of its cell and below") {
  const std::string svg = draw_grid_svg(faulty(), validate(faulty()));
  CHECK(svg.starts_with("<svg"));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count(svg, "<g>") == 8);
  CHECK(count(svg, "<title>rank 1, position 0: 1B0 stands ahead") == 1);
  CHECK(count(svg, "stands ahead of its forward") == 2);
  CHECK(svg.find("a &lt;test&gt;") != std::string::npos);
}

TEST_CASE("an empty schedule draws without cells") {
  CHECK(draw_grid({}, {}).ends_with(": 0 ranks, 0 stages, 0 micro-batches\n"));
  CHECK(draw_grid_svg({}, {}).ends_with("</svg>\n"));
}

}  // namespace plumb::test
