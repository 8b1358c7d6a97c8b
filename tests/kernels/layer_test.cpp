#include "kernels/layer.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace plumb::test {
namespace {

TransformerLayer llama3_8b_block() {
  return {.hidden = 4096,
          .heads = 32,
          .kv_heads = 8,
          .head_size = 128,
          .ffn = 14336,
          .rotary_size = 128,
          .rope_theta = 500000.0};
}

TransformerLayer gpt2_small_block() {
  return {.hidden = 768,
          .heads = 12,
          .kv_heads = 12,
          .head_size = 64,
          .ffn = 3072,
          .norm = NormKind::kLayerNorm,
          .mlp = MlpKind::kGelu,
          .qkv_bias = true,
          .linear_bias = true};
}

std::int64_t matrix_parameters(const Layer& layer) {
  std::int64_t count = 0;
  for (const ParameterTensor& tensor : layer_parameters(layer))
    if (tensor.shape.size() == 2) count += element_count(tensor);
  return count;
}

double flops_of(const std::vector<KernelCall>& calls, KernelKind kind) {
  double flops = 0;
  for (const KernelCall& call : calls)
    if (call.kind == kind) flops += call.flops;
  return flops;
}

std::int64_t saved_elements(const Layer& layer, const LayerWork& work) {
  std::int64_t count = 0;
  for (const SavedTensor& tensor : saved_tensors(layer_program(layer, work))) count += tensor.elements;
  return count;
}

}  // namespace

TEST_CASE("Llama 3 8B has its published number of parameters") {
  const std::int64_t count = parameter_count(EmbeddingLayer{.vocab = 128256, .hidden = 4096}) +
                             32 * parameter_count(llama3_8b_block()) +
                             parameter_count(HeadLayer{.vocab = 128256, .hidden = 4096});
  CHECK(count == 8'030'261'248);  // Hugging Face's model card
}

TEST_CASE("GPT-2 small has its published number of parameters when its tied table is counted once") {
  const HeadLayer head{.vocab = 50257, .hidden = 768, .norm = NormKind::kLayerNorm, .tied = true};
  const std::int64_t table = 50257 * 768;
  const std::int64_t count = parameter_count(EmbeddingLayer{.vocab = 50257, .hidden = 768, .positions = 1024}) +
                             12 * parameter_count(gpt2_small_block()) + parameter_count(head) - table;
  CHECK(count == 124'439'808);
}

TEST_CASE("GEMM FLOPs of a block are two a token and matrix parameter, and twice that backward") {
  for (const TransformerLayer& block : {llama3_8b_block(), gpt2_small_block()}) {
    const LayerWork work{.microbatch = 2, .sequence = 96};
    const double expected = 2.0 * static_cast<double>(matrix_parameters(block)) * 192.0;
    CHECK(flops_of(layer_kernels(block, work, Pass::kForward), KernelKind::kGemm) == expected);
    CHECK(flops_of(layer_kernels(block, work, Pass::kInputGrad), KernelKind::kGemm) == expected);
    CHECK(flops_of(layer_kernels(block, work, Pass::kWeightGrad), KernelKind::kGemm) == expected);
  }
}

TEST_CASE("attention counts the pairs of query and key that the mask and the window leave") {
  // b = 2, a = 3, d = 5, s = 4: 1+2+3+4 = 10 pairs a head; with a window of 2: 1+2+2+2 = 7.
  CHECK(kernel_call(KernelKind::kAttentionForward, {2, 4, 3, 1, 5, 0}).flops == 2 * 3 * 4 * 5 * 10);
  CHECK(kernel_call(KernelKind::kAttentionForward, {2, 4, 3, 1, 5, 2}).flops == 2 * 3 * 4 * 5 * 7);
  CHECK(kernel_call(KernelKind::kAttentionForward, {2, 4, 3, 1, 5, 9}).flops == 2 * 3 * 4 * 5 * 10);
  CHECK(kernel_call(KernelKind::kAttentionBackward, {2, 4, 3, 1, 5, 0}).flops == 2 * 3 * 10 * 5 * 10);
}

TEST_CASE("tensor parallelism divides matrices and heads, and leaves norms and the residual stream whole") {
  const Layer block = llama3_8b_block();
  const std::int64_t norms = 2 * 4096;
  CHECK(parameter_count(block, 8) == (parameter_count(block) - norms) / 8 + norms);
  const LayerWork whole{.microbatch = 1, .sequence = 128};
  const LayerWork divided{.microbatch = 1, .sequence = 128, .tensor_parallel = 8};
  CHECK(flops_of(layer_kernels(block, divided, Pass::kForward), KernelKind::kAttentionForward) * 8 ==
        flops_of(layer_kernels(block, whole, Pass::kForward), KernelKind::kAttentionForward));
  CHECK(output_elements(block, divided) == output_elements(block, whole));
}

TEST_CASE("sequence parallelism divides everything that a block saves") {
  const Layer block = llama3_8b_block();
  const LayerWork whole{.microbatch = 1, .sequence = 128};
  const LayerWork divided{.microbatch = 1, .sequence = 128, .tensor_parallel = 8, .sequence_parallel = true};
  CHECK(saved_elements(block, divided) * 8 == saved_elements(block, whole));
  CHECK(output_elements(block, divided) * 8 == output_elements(block, whole));
}

TEST_CASE("a GPT block saves 16 elements a token and hidden channel besides its statistics") {
  // Korthikanti et al. 2022, table 2, as elements, without dropout and the s^2 tensors that flash attention does not
  // keep: input 1, norm 1's output 1, Q K V 3, attention output 1, residual 1, norm 2's output 1, up 4, activation 4.
  const TransformerLayer block = gpt2_small_block();
  std::int64_t elements = 0;
  for (const SavedTensor& tensor : saved_tensors(layer_program(block, {.microbatch = 1, .sequence = 64})))
    if (!tensor.single_precision && !tensor.from_input_grad) elements += tensor.elements;
  CHECK(elements == 16 * 64 * 768);
}

TEST_CASE("sizes that tensor parallelism does not divide are rounded up, and every rank has a kv head") {
  const TransformerLayer block{.hidden = 8, .heads = 3, .kv_heads = 1, .head_size = 4, .ffn = 5};
  const std::vector<ParameterTensor> tensors = layer_parameters(block, 2);
  const auto qkv = std::ranges::find(tensors, "qkv.weight", &ParameterTensor::name);
  CHECK(qkv->shape == std::vector<std::int64_t>{(2 + 2) * 4, 8});
}

TEST_CASE("an embedding has no input gradient and a head hands nothing on") {
  CHECK(layer_kernels(EmbeddingLayer{.vocab = 10, .hidden = 4}, {}, Pass::kInputGrad).empty());
  CHECK(output_elements(HeadLayer{.vocab = 10, .hidden = 4}, {}) == 0);
}

TEST_CASE("a mixture of experts holds its share of experts, a router and what all tokens pass") {
  const TransformerLayer mixture{.hidden = 64,
                                 .heads = 4,
                                 .kv_heads = 4,
                                 .head_size = 16,
                                 .ffn = 128,
                                 .experts = 8,
                                 .experts_per_token = 2,
                                 .expert_ffn = 32,
                                 .shared_ffn = 48};
  const std::int64_t expert = 3 * 64 * 32;  // gate, up and down
  CHECK(expert_parameter_count(mixture) == 8 * expert);
  CHECK(expert_parameter_count(mixture, {.parallel = 4}) == 2 * expert);
  CHECK(expert_parameter_count(mixture, {.parallel = 4, .tensor = 2}) == expert);
  TransformerLayer dense = mixture;
  dense.experts = 0;
  const std::int64_t mlp = 3 * 64 * 128;
  CHECK(parameter_count(mixture) == parameter_count(dense) - mlp + 8 * expert + 8 * 64 + 3 * 64 * 48);
}

TEST_CASE("an expert takes its even share of a sequence's picks times the capacity factor, at least one, at most all") {
  TransformerLayer mixture{.experts = 8, .experts_per_token = 2};
  CHECK(expert_capacity(mixture, 100) == 100);
  mixture.capacity_factor = 1;
  CHECK(expert_capacity(mixture, 100) == 25);
  CHECK(expert_capacity(mixture, 101) == 26);  // 25.25
  mixture.capacity_factor = 1.25;
  CHECK(expert_capacity(mixture, 100) == 32);  // 31.25
  mixture.capacity_factor = 0.001;
  CHECK(expert_capacity(mixture, 100) == 1);
  mixture.capacity_factor = 50;
  CHECK(expert_capacity(mixture, 100) == 100);
}

TEST_CASE("GEMM FLOPs of a mixture are two a token and parameter that it meets, and twice that backward") {
  const TransformerLayer mixture{.hidden = 64,
                                 .heads = 4,
                                 .kv_heads = 4,
                                 .head_size = 16,
                                 .experts = 8,
                                 .experts_per_token = 2,
                                 .expert_ffn = 32,
                                 .shared_ffn = 48};
  const std::int64_t met = 4 * 64 * 64 + 8 * 64 + 2 * 3 * 64 * 32 + 3 * 64 * 48;
  const LayerWork work{.microbatch = 2, .sequence = 32};
  for (const Pass pass : {Pass::kForward, Pass::kInputGrad, Pass::kWeightGrad})
    CHECK(flops_of(layer_kernels(mixture, work, pass), KernelKind::kGemm) == 2.0 * 64 * static_cast<double>(met));
  // With two ranks of four experts each, the experts make as many products of twice the rows together, half of them
  // here.
  const LayerWork spread{.microbatch = 2, .sequence = 32, .experts = {.parallel = 2}};
  CHECK(flops_of(layer_kernels(mixture, spread, Pass::kForward), KernelKind::kGemm) ==
        2.0 * 64 * static_cast<double>(met));
}

TEST_CASE("latent attention compresses queries, keys and values as DeepSeek-V3 does") {
  const TransformerLayer layer{.hidden = 7168,
                               .heads = 128,
                               .kv_heads = 128,
                               .head_size = 192,
                               .ffn = 18432,
                               .rotary_size = 64,
                               .query_rank = 1536,
                               .kv_rank = 512,
                               .value_size = 128};
  const std::int64_t norms = 2 * 7168;
  const std::int64_t mlp = 3 * 7168 * 18432;
  // 7168 x 1536 + 1536 x 128 x 192, 7168 x (512 + 64) + 512 x 128 x (128 + 128), 128 x 128 x 7168, and two norms.
  CHECK(parameter_count(layer) - norms - mlp ==
        7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168 + 1536 + 512);
}

TEST_CASE("every kernel kind has a name of its own") {
  std::vector<std::string_view> names;
  for (int kind = 0; kind < kKernelKindCount; ++kind) names.push_back(kernel_name(static_cast<KernelKind>(kind)));
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
}

TEST_CASE("the optimizer updates every parameter once") {
  double elements = 0;
  for (const KernelCall& call : layer_kernels(gpt2_small_block(), {}, Pass::kOptimizer))
    elements += double(call.shape[0]);
  CHECK(elements == double(parameter_count(gpt2_small_block())));
}

}  // namespace plumb::test
