#include "planner/price/framework/vocabulary_ops.h"

#include <doctest/doctest.h>

#include "tests/planner/price/framework/gpt_layer.h"

namespace plumb::test {
namespace {

const HeadLayer kHead{.vocab = 1000, .hidden = 64};
const EmbeddingLayer kEmbedding{.vocab = 1000, .hidden = 64, .positions = 128, .dropout = 0.1};
const LayerWork kVocabularyWork{.microbatch = 2, .sequence = 128};
constexpr double kVocabularyTokens = 256;

double traffic_named(const PassOps& pass, std::string_view name) {
  double sum = 0;
  for (const DeviceKernel& kernel : pass.kernels) {
    if (kernel.name == name) sum += kernel.bytes;
  }
  return sum;
}

const DeviceKernel& product_of(const PassOps& pass) {
  for (const DeviceKernel& kernel : pass.kernels) {
    if (kernel.kind == DeviceKernel::Kind::kGemm) return kernel;
  }
  FAIL("no product");
  return pass.kernels.front();
}

}  // namespace

TEST_CASE("the head's products have the padded vocabulary, divided over the tensor group") {
  LayerWork work = kVocabularyWork;
  work.tensor_parallel = 2;
  const StackSpec stack{.name = "padded", .vocab_multiple = 128};
  const LayerOps ops = head_ops(kHead, work, stack, kElementBytes);
  CHECK(product_of(ops.forward).shape.n == 512);  // 1024 / 2
  CHECK(product_of(ops.forward).alignment == 512);
  CHECK(product_of(ops.input_grad).shape.k == 512);
  CHECK(product_of(ops.weight_grad).shape.m == 512);
}

TEST_CASE("an unfused cross-entropy reads and writes the logits many times") {
  const double logits = kVocabularyTokens * 1000 * 2;
  StackSpec stack{.name = "fused"};
  const auto passes = [&] {
    const LayerOps ops = head_ops(kHead, kVocabularyWork, stack, kElementBytes);
    return std::pair(traffic_named(ops.forward, "cross-entropy") / logits,
                     traffic_named(ops.input_grad, "cross-entropy") / logits);
  };
  CHECK(passes() == std::pair(1.0, 2.0));
  stack.fused_cross_entropy = false;
  CHECK(passes() == std::pair(3.0 + 2 + 4 + 4 + 2 + 4, 4.0 + 3));
}

TEST_CASE("the embedding looks up, adds positions, drops out, and its gradient covers the table") {
  const double e = kVocabularyTokens * 64 * 2;
  const LayerOps ops = embedding_ops(kEmbedding, kVocabularyWork, {.name = "any"}, kElementBytes);
  double forward = 0;
  for (const DeviceKernel& kernel : ops.forward.kernels) forward += kernel.bytes;
  CHECK(forward == doctest::Approx((2 + 3 + 2.5) * e));
  CHECK(traffic_named(ops.weight_grad, "table gradient") == (2 * 2 + 2 * 4) * 1000 * 64);
  CHECK(ops.input_grad.kernels.empty());
}

TEST_CASE("vocabulary parallelism sums the embedding and three small values of the loss") {
  LayerWork work = kVocabularyWork;
  work.tensor_parallel = 4;
  const StackSpec stack{.name = "any"};
  const LayerOps embedding = embedding_ops(kEmbedding, work, stack, kElementBytes);
  REQUIRE(embedding.forward.exchanges.size() == 1);
  CHECK(embedding.forward.exchanges[0].bytes == kVocabularyTokens * 64 * 2);
  const LayerOps head = head_ops(kHead, work, stack, kElementBytes);
  REQUIRE(head.forward.exchanges.size() == 1);
  CHECK(head.forward.exchanges[0].count == 3);
  CHECK(head.forward.exchanges[0].bytes == kVocabularyTokens * 4);
}

TEST_CASE("the head's products are not quantized") {
  const LayerOps ops = head_ops(kHead, kVocabularyWork, {.name = "any", .fused_accumulation = false}, kElementBytes);
  for (const PassOps* pass : {&ops.forward, &ops.input_grad, &ops.weight_grad}) CHECK(product_of(*pass).wide);
}

}  // namespace plumb::test
