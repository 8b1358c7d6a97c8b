#include "planner/price/memory/backward_moments.h"

#include <doctest/doctest.h>

#include "tests/planner/price/framework/gpt_layer.h"

namespace plumb::test {
namespace {

const LayerWork kLongWork{.microbatch = 4, .sequence = 2048};
constexpr double kLongTokens = 4 * 2048, kWidth = 1024;

}  // namespace

TEST_CASE("a plain block's largest moment is its down projection, a gated one's the activation") {
  const double plain = layer_backward_bytes(kGpt, kLongWork, {.name = "any"}, 2);
  const double f = static_cast<double>(kGpt.ffn);
  CHECK(plain == 2 * (kLongTokens * kWidth + kLongTokens * f + kWidth * f));
  const double gated = layer_backward_bytes(kLlama, kLongWork, {.name = "any"}, 2);
  CHECK(gated == 2 * (kLongTokens * kWidth + 2 * kLongTokens * static_cast<double>(kLlama.ffn)));
}

TEST_CASE("few tokens leave the gradient of the larger weights, or what takes its place") {
  const LayerWork few{.microbatch = 1, .sequence = 16};
  const double u = 2 * static_cast<double>(kLlama.ffn), f = static_cast<double>(kLlama.ffn);
  CHECK(layer_backward_bytes(kLlama, few, {.name = "any"}, 2) == 2 * (16 * kWidth + 16 * (kWidth - f) + kWidth * u));
  CHECK(layer_backward_bytes(kLlama, few, {.name = "any", .kept_weight_gradients = true}, 2) ==
        2 * (16 * kWidth + 16 * u));
  CHECK(layer_backward_bytes(kLlama, few, {.name = "any", .weight_gradients = false}, 2) == 2 * (16 * kWidth + 16 * u));
}

TEST_CASE("unfused attention holds the gradients of its probabilities, before and behind their dropout") {
  const double scores = 4 * 16 * 2048.0 * 2048;
  CHECK(score_elements(kGpt, kLongWork, unfused()) == scores);
  CHECK(score_elements(kGpt, kLongWork, {.name = "flash"}) == 0);
  CHECK(attention_backward_bytes(kGpt, kLongWork, {.name = "flash"}, false, 2) == 0);
  const double whole =
      2 * (2 * kLongTokens * kWidth + 2 * scores - 2 * kLongTokens * 4 * kWidth);  // both products' inputs have gone
  CHECK(attention_backward_bytes(kGpt, kLongWork, unfused(), false, 2) == whole);
  CHECK(attention_backward_bytes(kGpt, kLongWork, unfused(), true, 2) == 2 * (3 * kLongTokens * kWidth + 2 * scores));
  TransformerLayer dry = kGpt;
  dry.dropout = 0;
  CHECK(whole - attention_backward_bytes(dry, kLongWork, unfused(), false, 2) == 2 * scores);
}

TEST_CASE("W needs 32 s b h bytes of a layer, Qi et al. 2024, table 1") {
  CHECK(weight_grad_bytes(kGpt, kLongWork, 2) == 32 * kLongTokens * kWidth);
  TransformerLayer experts = kGpt;
  experts.experts = 8;
  CHECK(weight_grad_bytes(experts, kLongWork, 2) == 0);
}

TEST_CASE("sequence parallelism gathers the gradient of the output") {
  LayerWork work = kLongWork;
  work.tensor_parallel = 4;
  const StackSpec stack{.name = "any", .kept_weight_gradients = true};
  const double whole = layer_backward_bytes(kLlama, work, stack, 2);
  work.sequence_parallel = true;
  CHECK(layer_backward_bytes(kLlama, work, stack, 2) - whole == 2 * kLongTokens * kWidth / 4);
}

TEST_CASE("shapes are counted once") {
  CHECK(distinct_elements({{3, 4}, {4, 3}, {3, 4}}) == 24);
  TransformerLayer square = kGpt;
  square.ffn = square.hidden;  // projection, up and down are alike
  CHECK(distinct_elements(weight_shapes(square, kLongWork)) == kWidth * kWidth + 3 * kWidth * kWidth);
}

TEST_CASE("latent attention has a product for each latent vector, experts one pair of shapes for all") {
  TransformerLayer layer = kLlama;
  layer.query_rank = 96;
  layer.kv_rank = 32;
  layer.rotary_size = 16;
  layer.head_size = 80;
  layer.value_size = 64;
  layer.experts = 8;
  layer.expert_ffn = 384;
  const auto a = static_cast<double>(layer.heads);
  const double attention = kWidth * a * 64 + 96 * kWidth + a * 80 * 96 + (32 + 16) * kWidth + a * (64 + 64) * 32;
  CHECK(distinct_elements(weight_shapes(layer, kLongWork)) == attention + 2 * 384 * kWidth + kWidth * 384);
}

TEST_CASE("the head's backward holds the gradients of logits and table") {
  const HeadLayer head{.vocab = 1000, .hidden = 1024};
  StackSpec stack{.name = "any"};
  CHECK(head_backward_bytes(head, stack, 5000, 1000, 80, 80, 2) == 2 * (5000 + 1000 * kWidth + 3 * 80));
  CHECK(head_backward_bytes(head, stack, 5000, 1000, 80, 20, 2) == 2 * (5000 + 1000 * kWidth + 2 * 20 + 2 * 80));
  stack.weight_gradients = false;
  CHECK(head_backward_bytes(head, stack, 5000, 1000, 80, 80, 2) == 2 * (5000 + 3 * 80));
}

}  // namespace plumb::test
