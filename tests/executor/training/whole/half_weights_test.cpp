// Weights and messages in 16 bits beside master weights: losses follow one rank's, every split gives the same bits, and
// fp16's loss scale adapts.

#include <cmath>

#include <doctest/doctest.h>

#include "executor/layers/host/half_tensors.h"
#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/sharded_spec.h"
#include "tests/executor/small_model.h"

namespace plumb::test {

TEST_CASE("16-bit weights train under every sharding like those of one rank, and take half the bytes") {
  for (const HalfFormat format : {HalfFormat::kBf16, HalfFormat::kFp16}) {
    RunSpec reference = one_rank(gpt_model(2), 4);
    reference.half = format;
    reference.optimizer = AdamW{.learning_rate = 1e-2F};
    const std::vector<double> expected = losses_after(reference, 20);
    CHECK(expected.back() < 0.9 * expected.front());
    for (const Sharded& sharded : kAllShardings) {
      CAPTURE(sharded.zero);
      const Schedule order = make_schedule("1f1b", {.ranks = 2, .microbatches = 2});
      RunSpec spec = sharded_spec(gpt_model(2), order, 2, sharded);
      spec.half = format;
      spec.optimizer = reference.optimizer;
      const std::vector<double> losses = losses_after(spec, 20);
      // A master weight near the middle of two 16-bit numbers may fall to either side.
      for (std::size_t i = 0; i < 20; ++i) CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(2e-3));
    }
  }
}

TEST_CASE("in 16 bits every split into stages has the same bits, and messages half the bytes") {
  for (const HalfFormat format : {HalfFormat::kBf16, HalfFormat::kFp16}) {
    RunSpec alone = one_rank(llama_model(), 4);
    alone.half = format;
    const ModelValues expected = gradients_of(alone);
    for (const auto& [name, chunks] : {std::pair{"1f1b", 1}, std::pair{"interleaved", 2}}) {
      RunSpec spec = spec_of(llama_model(), make_schedule(name, {.ranks = 2, .microbatches = 4, .chunks = chunks}));
      spec.half = format;
      CHECK(gradients_of(spec) == expected);
      spec.rebuild = Recompute::kStage;
      CHECK(gradients_of(spec) == expected);
    }
    RunSpec single = alone;
    single.half = {};
    const double rounding = worst_difference(expected, gradients_of(single));
    CHECK(rounding > 1e-4);  // activations are rounded
    CHECK(rounding < 0.1);
  }
}

TEST_CASE("an overflow in fp16 skips the step on all ranks and halves the loss scale, until it fits") {
  // For one token the head's gradient is 31/32 of the normed activations, whose root mean square is 1, so that some are
  // above 32/31: 2^16 times that is beyond 65504.
  RunSpec spec = spec_of(llama_model(2), make_schedule("1f1b", {.ranks = 3, .microbatches = 1}));
  spec.half = HalfFormat::kFp16;
  spec.microbatch = spec.sequence = 1;
  spec.steps = 1;
  const RunResult skipped = run(spec, {.capture_weights = true});
  CHECK(skipped.skipped_steps == 1);
  spec.optimizer = AdamW{.learning_rate = 0};
  CHECK(skipped.weights == run(spec, {.capture_weights = true}).weights);
  spec.optimizer = AdamW{};
  spec.steps = 8;
  const RunResult result = run(spec);
  CHECK(result.skipped_steps < 8);
  CHECK(result.loss_scales.front() == 65536);
  CHECK(result.loss_scales.back() == std::ldexp(65536.0, -result.skipped_steps));
}

TEST_CASE("weights that have left fp16's range end the run at the first loss that is no number") {
  RunSpec spec = spec_of(llama_model(2), make_schedule("1f1b", {.ranks = 2, .microbatches = 2}));
  spec.half = HalfFormat::kFp16;
  spec.optimizer = AdamW{.learning_rate = 1e30F};
  spec.steps = 40;
  CHECK_THROWS_WITH_AS(run(spec), doctest::Contains("the run has diverged"), RunError);
}

}  // namespace plumb::test
