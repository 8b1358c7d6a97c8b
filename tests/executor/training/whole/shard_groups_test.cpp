// Groups of replicas that share state among them, each group all of it (HSDP), have the numbers of one rank.

#include "executor/program/replay_groups.h"

#include <doctest/doctest.h>

#include <memory>

#include "executor/layers/parameter_places.h"
#include "schedules/error.h"
#include "tests/executor/sharded_spec.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

/// Returns a run whose state is shared by pairs of replicas.
RunSpec in_pairs(const std::vector<Layer>& model, const Schedule& order, int data, const Sharded& sharded) {
  RunSpec spec = sharded_spec(model, order, data, sharded);
  spec.shard = 2;
  return spec;
}

}  // namespace

TEST_CASE("pairs that share state give one rank's gradients and its clipped losses, in every way to share") {
  for (const auto& model : {llama_model(2), gpt_model(2)}) {
    RunSpec alone = one_rank(model, 8);
    const ModelValues expected = gradients_of(alone);
    alone.clip_norm = 0.05;
    const std::vector<double> losses = losses_after(alone, 6);
    for (const Sharded& sharded : kAllShardings)
      for (const char* name : {"1f1b", "interleaved", "zb-h1"}) {
        CAPTURE(sharded.zero);
        CAPTURE(int(sharded.by));
        CAPTURE(sharded.layerwise);
        CAPTURE(name);
        const int chunks = std::string_view(name) == "interleaved" ? 2 : 1;
        RunSpec spec =
            in_pairs(model, make_schedule(name, {.ranks = 2, .microbatches = 2, .chunks = chunks}), 4, sharded);
        CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
        spec.clip_norm = 0.05;
        check_losses(losses_after(spec, 6), losses);
      }
  }
}

TEST_CASE("groups that share state have the copies of their replicas at both ends of a pipeline") {
  const std::vector<Layer> model = gpt_model(2);
  const ModelValues expected = gradients_of(one_rank(model, 16));
  for (const char* name : {"chimera", "dualpipe"})
    for (const int zero : {1, 2, 3}) {
      CAPTURE(name);
      CAPTURE(zero);
      const Schedule order = make_schedule(name, {.ranks = 2, .microbatches = 4});
      CHECK(worst_difference(gradients_of(in_pairs(model, order, 4, {.zero = zero})), expected) <= 1e-5);
    }
}

TEST_CASE("context ranks count among the replicas that share state, and experts share theirs among the same ranks") {
  for (const std::vector<Layer>& model : {mixtral_model(2), with_dropout(shared_expert_model(2))}) {
    RunSpec alone = one_rank(model, 8);
    alone.sequence = 8;
    const ModelValues expected = gradients_of(alone);
    struct Division {
      ProcessGrid grid;
      int shard = 2;
    };
    for (const Division& division :
         {Division{{.context = 2, .data = 2}}, Division{{.expert = 2, .data = 4}}, Division{{.data = 4}},
          Division{{.expert = 2, .data = 8}, 4}, Division{{.tensor = 2, .expert = 2, .expert_tensor = 1, .data = 4}}})
      for (const int zero : {1, 3}) {
        CAPTURE(division.grid.context);
        CAPTURE(division.grid.expert);
        CAPTURE(division.grid.data);
        CAPTURE(zero);
        const int microbatches = 8 / division.grid.data;
        RunSpec spec = spec_over(model, "naive", {.ranks = 1, .microbatches = microbatches}, division.grid, zero);
        spec.shard = division.shard;
        CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
      }
  }
}

TEST_CASE("a rank holds its share of what its group shares, and checkpoints go on in another layout") {
  const std::vector<Layer> model = gpt_model(2);
  std::int64_t elements = 0;
  for (const Layer& layer : model) elements += parameter_count(layer);
  const Schedule order = make_schedule("gpipe", {.ranks = 1, .microbatches = 2});
  const std::vector<std::int64_t> bounds = shares_by_element(elements, 2);
  for (const int zero : {1, 2, 3}) {
    RunSpec spec = in_pairs(model, order, 4, {.zero = zero});
    spec.steps = 4;
    TrainingState state;
    const RunResult result = run(spec, {.checkpoint_every = 2, .checkpoint = [&](const TrainingState& saved) {
                                          if (saved.steps == 2) state = saved;
                                        }});
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const std::int64_t share = bounds[rank % 2 + 1] - bounds[rank % 2];
      CHECK(result.parameter_bytes[rank] == ParameterBytes{.weights = 4 * (zero >= 3 ? share : elements),
                                                           .gradients = 4 * (zero >= 2 ? share : elements),
                                                           .optimizer = 8 * share});
    }
    RunSpec on = spec, elsewhere = one_rank(model, 8);
    on.resume = elsewhere.resume = std::make_shared<const TrainingState>(state);
    elsewhere.steps = 4;
    const std::vector<double> again = run(on).losses, alone = run(elsewhere).losses;
    REQUIRE(again.size() == 2);
    for (std::size_t step = 0; step < 2; ++step) {
      CHECK(again[step] == result.losses[2 + step]);
      CHECK(alone[step] == doctest::Approx(result.losses[2 + step]).epsilon(1e-5));
    }
  }
}

TEST_CASE("groups that cannot share state are refused in a sentence") {
  const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
  RunSpec spec = in_pairs(llama_model(), order, 4, {.zero = 1});
  spec.shard = 3;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("groups of 3 cannot share state among 4 replicas"), SpecError);
  spec.shard = 1;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("give a divisor above 1"), SpecError);
  spec = in_pairs(llama_model(), order, 4, {.zero = 0});
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("ZeRO stage 0 divides nothing"), SpecError);
  spec = spec_over(mixtral_model(2), "naive", {.ranks = 1, .microbatches = 1}, {.expert = 4, .data = 4}, 1);
  spec.shard = 2;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("do not hold whole groups of 4 ranks with all experts"), SpecError);
}

}  // namespace plumb::test
