#include "planner/evaluate/own_links_steps.h"

#include <doctest/doctest.h>

#include "planner/search/layout_tree.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("steps on links of their own are those of evaluate_sums, in every layout") {
  LayoutSpace space = parse_layout_space("mbs=1|2,tp=1|2,zero=0|1|3,schedule=1f1b|interleaved|zb-h1");
  space.wide = true;
  ClusterSpec cluster = round_cluster(8);
  cluster.host = preset_cluster("a100:8").host;
  const TrainingSpec training{.global_batch = 64, .sequence = 256};
  Pricing pricing(small_gpt(), cluster, training);
  OwnLinksSteps steps(training);
  int seen = 0;
  visit_layouts(pricing, space, [&](const Layout& layout) {
    if (++seen % 17 != 0) return true;  // a sample of them
    CAPTURE(to_text(layout));
    const Evaluation sums = evaluate_sums(pricing, layout);
    const TimedStep found = steps.of(layout, sums.priced);
    CHECK(found.makespan == sums.simulation.makespan);
    CHECK(found.busy == sums.simulation.busy);
    return true;
  });
  CHECK(seen > 1000);
}

}  // namespace plumb::test
