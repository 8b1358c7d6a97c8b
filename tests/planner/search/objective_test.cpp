#include "planner/search/objective.h"

#include <algorithm>
#include <functional>
#include <limits>

#include <doctest/doctest.h>

#include "planner/search/layout_tree.h"
#include "planner/search/search.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("a search finds the layout of the least value, whatever is made least") {
  Pricing pricing(small_gpt(), round_cluster(4), {.global_batch = 8, .sequence = 128});
  const LayoutSpace space = parse_layout_space("recompute=none,sp=0");
  const auto dear_tensor_ranks = [](const Layout& layout, const LeastTimes& times) {
    return layout.tensor * seconds(times.step);
  };
  const auto dear_pipelines = [](const Layout& layout, const LeastTimes& times) {
    return layout.pipeline * seconds(times.step);
  };
  for (const auto& price : {std::function(dear_tensor_ranks), std::function(dear_pipelines)}) {
    const SearchObjective objective{
        .value = [&](const Evaluation& found) { return price(found.layout, {.step = found.simulation.makespan}); },
        .bound = price};
    double least = std::numeric_limits<double>::infinity();
    for (const Layout& layout : enumerate_layouts(pricing, space).layouts)
      least = std::min(least, objective.value(evaluate(pricing, layout, {.network = NetworkOptions{}})));
    const SearchResult result = search_layouts(pricing, space, {.objective = objective, .keep = 1});
    REQUIRE(result.ranked.size() == 1);
    CHECK(objective.value(result.ranked.front()) == least);
  }
}

}  // namespace plumb::test
