// The norms of queries and keys by their numbers, as transformers' Qwen3Attention and Olmo2Attention have them.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/kernels/layer/all_kinds.h"

namespace plumb::test {
namespace {

/// Eight heads and two kv heads of 16 channels.
TransformerLayer normed_block(QueryKeyNorms norms) {
  TransformerLayer block = small_llama_block();
  block.query_key_norms = norms;
  return block;
}

constexpr LayerWork kNormWork{.microbatch = 2, .sequence = 16};

std::vector<std::vector<std::int64_t>> norm_shapes(const LayerProgram& program, Pass pass, KernelKind kind) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const KernelCall& call : kernels_of(program, pass))
    if (call.kind == kind) shapes.push_back(call.shape);
  return shapes;
}

std::int64_t sums_of_one_gain(const LayerProgram& program, std::int64_t elements) {
  return std::ranges::count(exchanges_of(program, Pass::kInputGrad), Exchange{.kind = ExchangeKind::kAllReduce,
                                                                              .group = ExchangeGroup::kTensor,
                                                                              .elements = elements,
                                                                              .type = StoredType::kSingle});
}

}  // namespace

TEST_CASE("a norm of each head has a row for each token and head, and one gain for all of them") {
  const TransformerLayer block = normed_block(QueryKeyNorms::kEachHead);
  CHECK(parameter_count(block) == parameter_count(small_llama_block()) + 2 * 16);
  const LayerProgram program = layer_program(block, kNormWork);
  using Shapes = std::vector<std::vector<std::int64_t>>;
  const Shapes forward = {{32, 128, 0}, {32 * 8, 16, 0}, {32 * 2, 16, 0}, {32, 128, 0}};
  CHECK(norm_shapes(program, Pass::kForward, KernelKind::kNormForward) == forward);
  const Shapes backward = {{32, 128, 0}, {32 * 8, 16, 0}, {32 * 2, 16, 0}, {32, 128, 0}};
  CHECK(norm_shapes(program, Pass::kInputGrad, KernelKind::kNormBackward) == backward);
}

TEST_CASE("a norm of all heads has a row for each token, and a gain for each channel") {
  const TransformerLayer block = normed_block(QueryKeyNorms::kAllHeads);
  CHECK(parameter_count(block) == parameter_count(small_llama_block()) + (8 + 2) * 16);
  using Shapes = std::vector<std::vector<std::int64_t>>;
  const Shapes forward = {{32, 128, 0}, {32, 8 * 16, 0}, {32, 2 * 16, 0}, {32, 128, 0}};
  CHECK(norm_shapes(layer_program(block, kNormWork), Pass::kForward, KernelKind::kNormForward) == forward);
}

TEST_CASE("a layer norm of heads has biases") {
  TransformerLayer block = small_gpt_block();
  const std::int64_t without = parameter_count(block);
  block.query_key_norms = QueryKeyNorms::kEachHead;
  CHECK(parameter_count(block) == without + 2 * 2 * 16);
}

TEST_CASE("the inputs of both norms and their rows' deviations are kept besides what attention keeps") {
  const auto bytes = [](const TransformerLayer& block) {
    std::int64_t sum = 0;
    for (const SavedTensor& tensor : saved_tensors(layer_program(block, kNormWork))) sum += tensor.bytes(2);
    return sum;
  };
  const std::int64_t heads = 8 + 2;
  CHECK(bytes(normed_block(QueryKeyNorms::kEachHead)) ==
        bytes(small_llama_block()) + 32 * heads * 16 * 2 + 32 * heads * 4);
}

TEST_CASE("tensor ranks sum the gradients of one gain for all heads, also without sequence parallelism") {
  LayerWork work = kNormWork;
  CHECK(sums_of_one_gain(layer_program(normed_block(QueryKeyNorms::kEachHead), work), 16) == 0);
  work.tensor_parallel = 2;
  CHECK(sums_of_one_gain(layer_program(normed_block(QueryKeyNorms::kEachHead), work), 16) == 2);
  work.sequence_parallel = true;
  CHECK(sums_of_one_gain(layer_program(normed_block(QueryKeyNorms::kEachHead), work), 16) == 2);
}

TEST_CASE("tensor ranks divide the gains of a norm of all heads, and sum over whole rows") {
  const TransformerLayer block = normed_block(QueryKeyNorms::kAllHeads);
  LayerWork work = kNormWork;
  work.tensor_parallel = 2;
  for (const ParameterTensor& tensor : layer_parameters(block, 2)) {
    if (tensor.name == "query_norm.gain") CHECK(tensor.shape == std::vector<std::int64_t>{4 * 16});
    if (tensor.name == "key_norm.gain") CHECK(tensor.shape == std::vector<std::int64_t>{16});
  }
  const LayerProgram program = layer_program(block, work);
  for (const Pass pass : {Pass::kForward, Pass::kInputGrad})
    CHECK(std::ranges::count(exchanges_of(program, pass), Exchange{.kind = ExchangeKind::kAllReduce,
                                                                   .group = ExchangeGroup::kTensor,
                                                                   .elements = 32,
                                                                   .type = StoredType::kSingle}) == 2);
}

}  // namespace plumb::test
