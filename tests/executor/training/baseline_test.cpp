#include "executor/training/baseline.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/executor/small_model.h"

namespace plumb::test {

TEST_CASE("the baseline of replicas in a pipeline has their gradients, on one rank") {
  for (const std::vector<Layer>& model : {gpt_model(), cnn_model()}) {
    const RunSpec spec = spec_of(model, make_schedule("1f1b", {.ranks = 3, .microbatches = 3}), 2);
    const RunSpec alone = baseline_of(spec);
    CHECK(world_size(alone.grid) == 1);
    CHECK(worst_difference(gradients_of(alone), gradients_of(spec)) <= 1e-5);
  }
}

TEST_CASE("the copies of a bidirectional pipeline are one model in the baseline") {
  const RunSpec spec = spec_of(mlp_model(), make_schedule("chimera", {.ranks = 2, .microbatches = 4}));
  CHECK(baseline_of(spec).stage_layers == std::vector<std::vector<Layer>>{mlp_model()});
}

TEST_CASE("an asynchronous schedule has no baseline") {
  CHECK_THROWS_AS(baseline_of(spec_of(gpt_model(), make_schedule("pipedream", {.ranks = 2, .microbatches = 4}))),
                  SpecError);
}

}  // namespace plumb::test
