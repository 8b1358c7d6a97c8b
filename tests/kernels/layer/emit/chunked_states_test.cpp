// Mamba-2's block (Dao & Gu 2024, 2405.21060) and a gated delta net (Yang et al. 2024, 2412.06464) by their numbers.

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/kernels/layer/all_kinds.h"

namespace plumb::test {
namespace {

constexpr LayerWork kMambaWork{.microbatch = 2, .sequence = 16};

}  // namespace

TEST_CASE("a block of Mamba-2 has the parameters of the published one") {
  // mistralai/Mamba-Codestral-7B-v0.1: 64 such blocks, two tables of 32768 x 4096 and the last norm have 7,285,403,648.
  const TransformerLayer block{.hidden = 4096,
                               .states = Mamba2Mixer{.heads = 128, .head_size = 64, .state_size = 128, .groups = 8}};
  CHECK(64 * parameter_count(block) + 2 * 32768 * 4096 + 4096 == 7'285'403'648);
}

TEST_CASE("both projections take part once a pass, and the state space in chunks") {
  const TransformerLayer block = small_mamba2();  // 8 heads of 16, states of 32, 4 groups, chunks of 8
  const LayerProgram program = layer_program(block, kMambaWork);
  const double projections = 64.0 * (128 + (128 + 2 * 4 * 32) + 8) + 128.0 * 64;
  for (const Pass pass : {Pass::kForward, Pass::kInputGrad, Pass::kWeightGrad}) {
    double flops = 0;
    for (const KernelCall& call : kernels_of(program, pass))
      if (call.kind == KernelKind::kGemm) flops += call.flops;
    CHECK(flops == 2 * 32 * projections);
  }
  const std::vector<KernelCall> calls = kernels_of(program, Pass::kForward);
  const auto states = std::ranges::find(calls, KernelKind::kStateSpaceForward, &KernelCall::kind);
  REQUIRE(states != calls.end());
  // A token: C B^T over a chunk in each group, M X in each head, the state's update and its reading.
  CHECK(states->flops == 32.0 * (2 * 4 * 32 * 8 + 2 * 128 * 8 + 4 * 128 * 32));
}

TEST_CASE("selective recomputation forgets what the norms and the convolution make") {
  const LayerProgram program = layer_program(small_mamba2(), kMambaWork);
  std::vector<std::string> again;
  for (const SavedTensor& tensor : saved_tensors(program, Recompute::kSelective))
    if (tensor.recomputed) again.push_back(tensor.name);
  CHECK(again == std::vector<std::string>{"norm1 output", "convolution output", "mixer_norm output"});
}

TEST_CASE("a tensor rank has whole groups, and exchanges the stream alone") {
  LayerWork divided = kMambaWork;
  divided.tensor_parallel = 2;
  const std::vector<Exchange> exchanges = exchanges_of(layer_program(small_mamba2(), divided), Pass::kForward);
  REQUIRE(exchanges.size() == 1);
  CHECK(exchanges[0] == Exchange{.kind = ExchangeKind::kAllReduce, .elements = 32 * 64});
  const std::vector<ParameterTensor> whole = layer_parameters(small_mamba2()),
                                     half = layer_parameters(small_mamba2(), 2);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(whole[i].name);
    const int parts = whole[i].split_dimension < 0 ? 1 : 2;
    CHECK(element_count(half[i]) * parts == element_count(whole[i]));
  }
}

TEST_CASE("devices have kernels for it") {
  CHECK(is_on_devices(small_mamba2()));
  CHECK(is_on_devices(small_llama_block()));
}

TEST_CASE("a gated delta net has the parameters of Qwen3-Next's") {
  // Its published sizes: 16 key heads and 32 value heads of 128 channels, 4 taps, a stream of 2048.
  const TransformerLayer block{
      .hidden = 2048, .states = DeltaNetMixer{.key_heads = 16, .value_heads = 32, .key_size = 128, .value_size = 128}};
  const std::int64_t projections = 2048 * (2 * 2048 + 2 * 4096) + 2048 * 2 * 32 + 4096 * 2048;
  CHECK(parameter_count(block) == projections + 4 * (2 * 2048 + 4096) + 2 * 32 + 128 + 2048);
}

TEST_CASE("the gated delta rule has the products of its chunked form") {
  const std::int64_t tokens = 32, heads = 8, k = 16, v = 8, q = 8;
  const KernelCall call = kernel_call(KernelKind::kDeltaRuleForward, {2, 16, heads, 4, k, v, q});
  // A token of a head: K K^T, the inverse of a triangle, W, U; W S and the states; Q S, Q K^T, its product with U.
  const double products =
      2 * q * k + 2.0 * q * q / 3 + 2 * q * k + 2 * q * v + 4 * k * v + 2 * k * v + 2 * q * k + 2 * q * v;
  CHECK(call.flops == doctest::Approx(tokens * heads * products).epsilon(1e-12));
}

}  // namespace plumb::test
