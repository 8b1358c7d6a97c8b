#include "planner/evaluate/evaluation.h"

#include <doctest/doctest.h>

#include "planner/search/layout_tree.h"
#include "planner/search/search.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("a prediction without a timeline is the same to the last bit, steady states among them") {
  const ModelSpec model = small_gpt();
  const TrainingSpec training{.global_batch = 256, .sequence = 128};
  const ClusterSpec cluster = round_cluster(4);
  Pricing pricing(model, cluster, training);
  int steady = 0;
  const Enumeration found = enumerate_layouts(pricing, {});
  for (std::size_t i = 0; i < found.layouts.size(); i += 7) {
    const Layout& layout = found.layouts[i];
    CAPTURE(to_text(layout));
    const Evaluation whole = evaluate(pricing, layout);
    const Evaluation sums = evaluate_sums(pricing, layout);
    CHECK(prediction_of(sums) == prediction_of(whole));
    CHECK(sums.simulation.makespan == whole.simulation.makespan);
    if (sums.simulation.engine == "steady state") ++steady;
  }
  CHECK(steady > 10);
}

TEST_CASE("prices that are kept give what pricing anew gives, on shared links and with a timeline too") {
  const TrainingSpec training{.global_batch = 32, .sequence = 128};
  Pricing pricing(small_gpt(), round_cluster(8), training);
  const SearchResult found = search_layouts(pricing, {}, {.keep = 5});
  REQUIRE(found.ranked.size() == 5);
  for (const Evaluation& ranked : found.ranked) {
    CAPTURE(to_text(ranked.layout));
    const Schedule order = order_of(training, ranked.layout);
    const EvaluationOptions shared{.network = NetworkOptions{}};
    Pricing other(small_gpt(), round_cluster(8), training);
    const Evaluation anew = evaluate(other, ranked.layout, price_layout(other, ranked.layout, order), order, shared);
    const Evaluation kept = evaluate(pricing, ranked.layout, ranked.priced, order, shared);
    CHECK(prediction_of(kept) == prediction_of(anew));
    CHECK(prediction_of(kept) == prediction_of(ranked));
    CHECK(kept.simulation.timeline.ranks.size() == anew.simulation.timeline.ranks.size());
  }
}

}  // namespace plumb::test
