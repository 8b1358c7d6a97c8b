#include "planner/observe/layout_changes.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "planner/search/evaluate_plan.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("a change moves one axis, fits and is faster; the fastest stands first") {
  Pricing pricing(small_gpt(), round_cluster(8), kSmallTraining);
  const Layout slow{.data = 2, .tensor = 4, .recompute = Recompute::kFull};
  const Seconds step = step_time(evaluate_sums(pricing, slow).simulation);
  const std::vector<LayoutChange> changes = layout_changes(pricing, slow, step);
  REQUIRE(changes.size() >= 2);
  CHECK(
      std::ranges::is_sorted(changes, {}, [](const LayoutChange& of) { return step_time(of.evaluation.simulation); }));
  for (const LayoutChange& change : changes) {
    CAPTURE(change.change);
    CHECK(step_time(change.evaluation.simulation) < step);
    CHECK(change.evaluation.infeasible.empty());
  }
  const auto without = std::ranges::find(changes, "recompute=none", &LayoutChange::change);
  REQUIRE(without != changes.end());
  CHECK(without->evaluation.layout.tensor == 4);
}

TEST_CASE("the best layout has no faster change") {
  const ModelSpec model = small_gpt();
  const SearchResult best = found_layouts(model, round_cluster(8), kSmallTraining, {}, {.keep = 1});
  REQUIRE_FALSE(best.ranked.empty());
  Pricing pricing(model, round_cluster(8), kSmallTraining);
  const Evaluation& first = best.ranked.front();
  CHECK(layout_changes(pricing, first.layout, step_time(first.simulation)).empty());
}

}  // namespace plumb::test
