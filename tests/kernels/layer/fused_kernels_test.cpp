#include "kernels/layer/layer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace plumb::test {
namespace {

TransformerLayer gpt_block() {
  return {.hidden = 64,
          .heads = 4,
          .kv_heads = 4,
          .head_size = 16,
          .ffn = 256,
          .norm = NormKind::kLayerNorm,
          .mlp = MlpKind::kGelu,
          .qkv_bias = true,
          .linear_bias = true};
}

constexpr LayerWork kFusedWork{.microbatch = 2, .sequence = 32};

bool is_product(const KernelCall& call) {
  return call.kind == KernelKind::kGemm || call.kind == KernelKind::kExpertProducts ||
         call.kind == KernelKind::kRouterProduct;
}
double product_flops(const std::vector<KernelCall>& calls) {
  double flops = 0;
  for (const KernelCall& call : calls)
    if (is_product(call)) flops += call.flops;
  return flops;
}
double elements(const std::vector<KernelCall>& calls) {
  double sum = 0;
  for (const KernelCall& call : calls) sum += call.elements_moved;
  return sum;
}
std::ptrdiff_t count_of(const std::vector<KernelCall>& calls, KernelKind kind) {
  return std::ranges::count(calls, kind, &KernelCall::kind);
}

}  // namespace

TEST_CASE("products that take in what follows them do the same products, and move fewer bytes in fewer kernels") {
  TransformerLayer mixture = gpt_block();
  mixture.qkv_bias = mixture.linear_bias = false;
  mixture.experts = 4;
  mixture.experts_per_token = 2;
  mixture.expert_ffn = 128;
  mixture.shared_ffn = 64;
  for (const TransformerLayer& block : {gpt_block(), mixture})
    for (const int ranks : {1, 2}) {
      LayerWork work = kFusedWork;
      work.tensor_parallel = ranks;
      work.sequence_parallel = ranks > 1;
      const LayerKernels plain = plain_kernels(block, work), fused = fused_kernels(block, work, false);
      CHECK(product_flops(fused.forward) == product_flops(plain.forward));
      CHECK(product_flops(fused.input_grad) == product_flops(plain.input_grad));
      CHECK(product_flops(fused.weight_grad) == product_flops(plain.weight_grad));
      CHECK(fused.forward.size() < plain.forward.size());
      CHECK(elements(fused.forward) < elements(plain.forward));
      CHECK(fused.weight_grad.size() <= plain.weight_grad.size());
    }
}

TEST_CASE("what is rebuilt from GELU's input has GELU's own kernel, and a bias that ranks share one of its own") {
  const LayerKernels none = fused_kernels(gpt_block(), kFusedWork, false),
                     cheap = fused_kernels(gpt_block(), kFusedWork, true);
  CHECK(count_of(none.forward, KernelKind::kActivationForward) == 0);
  CHECK(count_of(none.forward, KernelKind::kBiasForward) == 0);
  CHECK(count_of(cheap.forward, KernelKind::kActivationForward) == 1);
  CHECK(count_of(cheap.rebuild_selective, KernelKind::kActivationForward) == 1);
  CHECK(count_of(cheap.rebuild_selective, KernelKind::kNormForward) == 2);
  LayerWork divided = kFusedWork;
  divided.tensor_parallel = 2;
  CHECK(count_of(fused_kernels(gpt_block(), divided, false).forward, KernelKind::kBiasForward) == 1);
  CHECK(count_of(fused_kernels(gpt_block(), divided, false).weight_grad, KernelKind::kBiasBackward) == 0);
  divided.sequence_parallel = true;  // then the bias's gradient sums a rank's own rows
  CHECK(count_of(fused_kernels(gpt_block(), divided, false).weight_grad, KernelKind::kBiasBackward) == 2);
}

TEST_CASE("the plain lists are layer_kernels(), and what selective recomputation repeats of them") {
  const LayerKernels plain = plain_kernels(gpt_block(), kFusedWork);
  CHECK(plain.forward == layer_kernels(gpt_block(), kFusedWork, Pass::kForward));
  CHECK(plain.input_grad == layer_kernels(gpt_block(), kFusedWork, Pass::kInputGrad));
  CHECK(plain.weight_grad == layer_kernels(gpt_block(), kFusedWork, Pass::kWeightGrad));
  CHECK(plain.rebuild_selective.size() == 3);
}

}  // namespace plumb::test
