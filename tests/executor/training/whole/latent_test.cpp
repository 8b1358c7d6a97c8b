// Latent attention, sigmoid routers and bounded scores and logits, divided over ranks against one rank: the gradients of
// every tensor agree within 1e-5 of its largest.

#include <doctest/doctest.h>

#include <string_view>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"

namespace plumb::test {
namespace {

ModelValues gradients_alone(int microbatches) {
  RunSpec spec = one_rank(latent_model(), microbatches);
  spec.sequence = 8;
  return gradients_of(spec);
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
  const ModelValues expected = gradients_alone(8);
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe", "seq1f1b"}) {
    const std::string_view schedule = name;
    ScheduleParameters shape{.ranks = 2, .microbatches = 4};
    if (schedule == "interleaved") shape.chunks = 2;
    if (schedule == "seq1f1b") shape.slices = 2;
    for (const Recompute rebuild : {Recompute::kNone, Recompute::kSelective, Recompute::kStage}) {
      CAPTURE(name);
      RunSpec spec = spec_over(latent_model(), name, shape, {.data = 2}, rebuild == Recompute::kStage ? 1 : 0);
      spec.rebuild = rebuild;
      CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
    }
  }
}

TEST_CASE("a context group that exchanges heads is refused with the remedy") {
  RunSpec spec = spec_over(latent_model(), "naive", {.ranks = 1, .microbatches = 2}, {.context = 2});
  spec.context_attention = ContextAttention::kUlysses;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("a ring"), SpecError);
}

}  // namespace plumb::test
