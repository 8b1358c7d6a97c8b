#include "planner/search/other_values.h"

#include <optional>

#include <doctest/doctest.h>

#include "planner/search/bounds.h"
#include "planner/search/layout_tree.h"
#include "planner/search/search.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("the best layout with another value of a key is what simulating every layout with it finds") {
  const TrainingSpec training{.global_batch = 16, .sequence = 512};
  ClusterSpec cluster = round_cluster(4);
  cluster.device.memory_bytes = std::int64_t{900} << 20;  // so that some values do not fit
  Pricing pricing(small_gpt(), cluster, training);
  const LayoutRequest request = parse_layout("recompute=none");
  struct Timed {
    std::string keys;
    SimTime makespan{0};
  };
  std::vector<Timed> all;
  for (const Layout& layout : enumerate_layouts(pricing, request).layouts) {
    const Evaluation evaluation = evaluate(pricing, layout, {.network = NetworkOptions{}});
    if (!memory_shortfall(evaluation.simulation.peak_memory_bytes, cluster.device))
      all.push_back({"," + to_text(layout) + ",", evaluation.simulation.makespan});
  }
  const SearchResult found = search_layouts(pricing, request, {.keep = 2, .by_key = true});
  REQUIRE(!found.ranked.empty());
  int unfit = 0;
  for (const OtherValue& other : found.other_values) {
    const std::string key = other.key + "=" + other.value;
    CAPTURE(key);
    std::optional<SimTime> best;
    for (const Timed& one : all) {
      if (one.keys.find("," + key + ",") != std::string::npos && (!best || one.makespan < *best)) best = one.makespan;
    }
    REQUIRE(best.has_value() == other.best.has_value());
    if (best) {
      CHECK(other.best->simulation.makespan == *best);
      CHECK(("," + to_text(other.best->layout) + ",").find("," + key + ",") != std::string::npos);
      CHECK(*best >= found.ranked.front().simulation.makespan);
    } else {
      ++unfit;
      CHECK(other.missing_bytes > 0);
    }
  }
  CHECK(found.other_values.size() > 10);
  CHECK(unfit > 0);
}

}  // namespace plumb::test
