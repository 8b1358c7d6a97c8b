// Multi-head latent attention by its numbers (DeepSeek-AI 2024, 2405.04434, section 2.1).

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/kernels/layer/all_kinds.h"

namespace plumb::test {
namespace {

constexpr LayerWork kLatentWork{.microbatch = 2, .sequence = 16};

TransformerLayer dense_latent_block() {
  TransformerLayer block = small_latent_mixture();
  block.experts = 0;
  return block;
}

double gemm_flops(const LayerProgram& program, Pass pass) {
  double flops = 0;
  for (const KernelCall& call : kernels_of(program, pass))
    if (call.kind == KernelKind::kGemm) flops += call.flops;
  return flops;
}

std::int64_t elements_of(const LayerProgram& program, Pass pass, ExchangeKind kind) {
  std::int64_t elements = 0;
  for (const Exchange& exchange : exchanges_of(program, pass))
    if (exchange.kind == kind) elements += exchange.elements;
  return elements;
}

}  // namespace

TEST_CASE("every matrix of latent attention takes part once a pass") {
  for (const std::int64_t query_rank : {0, 48}) {
    TransformerLayer block = dense_latent_block();
    block.query_rank = query_rank;
    double parameters = 0;
    for (const ParameterTensor& tensor : layer_parameters(block))
      if (tensor.shape.size() == 2) parameters += static_cast<double>(element_count(tensor));
    const LayerProgram program = layer_program(block, kLatentWork);
    for (const Pass pass : {Pass::kForward, Pass::kInputGrad, Pass::kWeightGrad})
      CHECK(gemm_flops(program, pass) == 2 * 32 * parameters);
  }
}

TEST_CASE("its attention has values of another size than its keys") {
  // b = 2, a = 8, s = 16: 136 pairs a head; keys of 24 channels, values of 16.
  const std::vector<KernelCall> calls = kernels_of(layer_program(dense_latent_block(), kLatentWork), Pass::kForward);
  const auto attention = std::ranges::find(calls, KernelKind::kLatentAttentionForward, &KernelCall::kind);
  REQUIRE(attention != calls.end());
  CHECK(attention->flops == 2.0 * 2 * 8 * 136 * (24 + 16));
}

TEST_CASE("what is kept for the backward is compressed, besides what attention itself needs") {
  const LayerProgram program = layer_program(dense_latent_block(), kLatentWork);
  const std::vector<SavedTensor> saved = saved_tensors(program);
  const auto elements = [&](const char* name) {
    const auto found = std::ranges::find(saved, name, &SavedTensor::name);
    return found == saved.end() ? 0 : found->elements;
  };
  CHECK(elements("compressed queries") == 32 * 48);
  CHECK(elements("compressed keys and values without shared keys") == 32 * 32);
  CHECK(elements("compressed keys and values") == 0);  // the shared keys are in qkv
  CHECK(elements("qkv") == 32 * 8 * (2 * 24 + 16));
  CHECK(elements("queries") == 0);
  CHECK(elements("keys and values") == 0);
}

TEST_CASE("ranks that divide rows gather what is compressed, not the stream") {
  LayerWork divided = kLatentWork;
  divided.tensor_parallel = 2;
  divided.sequence_parallel = true;
  const LayerProgram program = layer_program(dense_latent_block(), divided);
  // Queries, keys with values and the shared keys are gathered compressed; the MLP's input is gathered whole.
  CHECK(elements_of(program, Pass::kForward, ExchangeKind::kAllGather) == 32 * (48 + 32 + 8) + 32 * 128);
  CHECK(elements_of(program, Pass::kForward, ExchangeKind::kReduceScatter) == 2 * 32 * 128);
  // The gradients of the matrices that every rank has are summed.
  CHECK(elements_of(program, Pass::kWeightGrad, ExchangeKind::kAllReduce) == 48 * 128 + (32 + 8) * 128);
}

}  // namespace plumb::test
