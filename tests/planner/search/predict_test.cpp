#include "planner/search/predict.h"

#include <doctest/doctest.h>

#include "planner/search/enumerate.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("a prediction without a timeline is the same to the last bit, steady states among them") {
  const ModelSpec model = small_gpt();
  const TrainingSpec training{.global_batch = 256, .sequence = 128};
  const ClusterSpec cluster = round_cluster(4);
  Pricing pricing(model, cluster, training);
  int steady = 0;
  const Enumeration found = enumerate_layouts(model, training, cluster.devices, {});
  for (std::size_t i = 0; i < found.layouts.size(); i += 7) {
    const Layout& layout = found.layouts[i];
    CAPTURE(to_text(layout));
    const Predicted whole = predict(pricing, layout);
    const Predicted sums = predict(pricing, layout, {.record_timeline = false});
    CHECK(sums.prediction == whole.prediction);
    CHECK(sums.simulation.makespan == whole.simulation.makespan);
    if (sums.simulation.engine == "steady state") ++steady;
  }
  CHECK(steady > 10);
}

}  // namespace plumb::test
