// Norms of queries and keys, divided over ranks, against one rank: the gradients of every tensor agree within 1e-5 of its
// largest.

#include <doctest/doctest.h>

#include "executor/training/run.h"
#include "schedules/error.h"
#include "tests/executor/small_model.h"
#include "tests/executor/training/every_schedule.h"

namespace plumb::test {
namespace {

/// Qwen3's norms on blocks with four heads and two kv heads.
std::vector<Layer> qwen3_model(int blocks) {
  return with_head_norms(llama_model(blocks), QueryKeyNorms::kEachHead);
}

}  // namespace

TEST_CASE("norms of heads over data and tensor ranks give the gradients of one rank") {
  check_over_data_and_tensor_ranks(qwen3_model(2));
  // Without RoPE the keys' bias has no gradient but rounding: it adds the same to all scores of a query.
  std::vector<Layer> model = with_head_norms(gpt_model(2), QueryKeyNorms::kEachHead);
  for (Layer& layer : model)
    if (auto* block = std::get_if<TransformerLayer>(&layer)) block->rotary_size = block->head_size;
  check_over_data_and_tensor_ranks(model);
}

TEST_CASE("tensor ranks that share a kv head share its norm") {
  const ModelValues expected = gradients_of(alone_on_one_rank(qwen3_model(2), 2));
  for (const bool sequence_parallel : {false, true}) {
    CAPTURE(sequence_parallel);
    RunSpec spec = spec_over(qwen3_model(2), "naive", {.ranks = 1, .microbatches = 2}, {.tensor = 4});
    spec.sequence_parallel = sequence_parallel;
    CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
  }
}

TEST_CASE("context ranks norm their own tokens, in a ring and with exchanged heads") {
  // Some queries and keys of four channels are so short that their norm makes rounding large: two blocks differ by 3e-5.
  const std::vector<Layer> model = with_head_norms(wide_llama(1), QueryKeyNorms::kEachHead);
  const ModelValues expected = gradients_of(alone_on_one_rank(model, 2));
  for (const ContextAttention attention : {ContextAttention::kRing, ContextAttention::kUlysses}) {
    CAPTURE(static_cast<int>(attention));
    RunSpec spec = spec_over(model, "naive", {.ranks = 1, .microbatches = 2}, {.tensor = 2, .context = 2});
    spec.context_attention = attention;
    CHECK(worst_difference(gradients_of(spec), expected) <= 1e-5);
  }
}

TEST_CASE("norms of heads go with every kind of schedule, with slices, sharded state and recomputation") {
  const std::vector<const char*> schedules = {"gpipe", "1f1b",     "interleaved", "zb-h1",
                                              "zb-v",  "dualpipe", "chimera",     "seq1f1b"};
  check_under_schedules(qwen3_model(4), schedules, gradients_of(alone_on_one_rank(qwen3_model(4), 8)));
}

TEST_CASE("a norm of all heads goes over stages and replicas, and is refused over tensor ranks with the remedy") {
  const std::vector<Layer> model = with_head_norms(llama_model(2), QueryKeyNorms::kAllHeads);
  check_under_schedules(model, {"1f1b", "zb-h1"}, gradients_of(alone_on_one_rank(model, 8)));
  CHECK_THROWS_WITH_AS(run(spec_over(model, "naive", {.ranks = 1, .microbatches = 2}, {.tensor = 2})),
                       doctest::Contains("set tensor to 1, or norm each head by itself"), SpecError);
}

TEST_CASE("a model with norms of heads trains: its losses fall, and two stages have those of one") {
  check_losses_fall_alike(qwen3_model(2), {});
}

}  // namespace plumb::test
