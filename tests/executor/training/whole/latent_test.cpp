// Latent attention, sigmoid routers and bounded scores and logits, divided over ranks against one rank: the gradients of
// every tensor agree within 1e-5 of its largest.

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/every_schedule.h"

namespace plumb::test {
namespace {

ModelValues gradients_alone(int microbatches) {
  return gradients_of(alone_on_one_rank(latent_model(), microbatches));
}

}  // namespace

TEST_CASE("latent attention over tensor, context and expert ranks gives the gradients of one rank") {
  const ModelValues expected = gradients_alone(4);
  for (const bool sequence_parallel : {false, true})
    for (const bool has_experts : {false, true}) {
      CAPTURE(sequence_parallel);
      CAPTURE(has_experts);
      const ProcessGrid grid = has_experts ? ProcessGrid{.tensor = 2, .context = 1, .expert = 2, .data = 2}
                                           : ProcessGrid{.tensor = 2, .context = 2, .data = 1};
      RunSpec spec = spec_over(latent_model(), "naive", {.ranks = 1, .microbatches = has_experts ? 2 : 4}, grid);
      spec.sequence_parallel = sequence_parallel;
      CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
    }
}

TEST_CASE("it goes with every kind of schedule, with slices, sharded state and recomputation") {
  check_under_schedules(latent_model(), {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe", "seq1f1b"},
                        gradients_alone(8));
}

TEST_CASE("biases of picks move by the loads of all ranks, the same in every layout, and go on from a checkpoint") {
  const auto trained = [](RunSpec spec, const RunOptions& options = {}) {
    spec.steps = 4;
    spec.clip_norm = 0.5;
    RunOptions capture = options;
    capture.capture_weights = true;
    return run(spec, capture);
  };
  RunSpec alone = one_rank(latent_model(), 8);
  alone.sequence = 8;
  const RunResult expected = trained(alone);
  constexpr std::size_t kMixture = 2;
  const std::vector<ParameterTensor> parameters = layer_parameters(latent_block());
  const auto bias = static_cast<std::size_t>(
      std::ranges::find(parameters, "router.selection_bias", &ParameterTensor::name) - parameters.begin());
  REQUIRE(bias < parameters.size());
  const std::vector<float>& biases = expected.weights[kMixture][bias];
  CHECK(std::ranges::any_of(biases, [](float value) { return value > 0; }));
  CHECK(std::ranges::any_of(biases, [](float value) { return value < 0; }));

  std::vector<RunSpec> layouts;
  for (const int zero : {0, 1, 2, 3})
    layouts.push_back(spec_over(latent_model(), "1f1b", {.ranks = 2, .microbatches = 4}, {.data = 2}, zero));
  layouts.push_back(spec_over(latent_model(), "naive", {.ranks = 1, .microbatches = 4},
                              {.tensor = 2, .context = 1, .expert = 2, .data = 2}));
  layouts.push_back(spec_over(latent_model(), "naive", {.ranks = 1, .microbatches = 8}, {.tensor = 2, .context = 2}));
  layouts.push_back(spec_over(latent_model(), "seq1f1b", {.ranks = 2, .microbatches = 4, .slices = 2}, {.data = 2}));
  layouts.push_back(spec_over(latent_model(), "dualpipe", {.ranks = 2, .microbatches = 8}, {}));
  std::shared_ptr<const TrainingState> state;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    CAPTURE(i);
    RunOptions options{.checkpoint_every = 2};
    options.checkpoint = [&](const TrainingState& saved) {
      if (saved.steps == 2) state = std::make_shared<TrainingState>(saved);
    };
    const RunResult result = trained(layouts[i], options);
    for (std::size_t step = 0; step < result.losses.size(); ++step)
      CHECK(result.losses[step] == doctest::Approx(expected.losses[step]).epsilon(1e-4));
    CHECK(result.weights[kMixture][bias] == biases);
  }
  alone.resume = state;
  CHECK(trained(alone).weights[kMixture][bias] == biases);
}

TEST_CASE("a context group that exchanges heads is refused with the remedy") {
  RunSpec spec = spec_over(latent_model(), "naive", {.ranks = 1, .microbatches = 2}, {.context = 2});
  spec.context_attention = ContextAttention::kUlysses;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("a ring"), SpecError);
}

}  // namespace plumb::test
