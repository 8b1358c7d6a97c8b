#include "planner/price/framework/mlp_ops.h"

#include <string_view>

#include <doctest/doctest.h>

#include "planner/price/framework/sizes.h"
#include "planner/price/framework/transformer_ops.h"
#include "planner/price/memory/framework_memory.h"
#include "tests/planner/price/framework/gpt_layer.h"

namespace plumb::test {
namespace {

constexpr double kMlpTokens = 1024;
constexpr double kGptHidden = 1024;
constexpr double kFfn = 2048;
constexpr double kPicks = 2;

/// Returns a layer with two of eight experts a token, four on a rank, with gates and biases as asked.
TransformerLayer mixture(bool gated, bool biased) {
  TransformerLayer layer = kGpt;
  layer.mlp = gated ? MlpKind::kSwiglu : MlpKind::kGelu;
  layer.linear_bias = biased;
  layer.experts = 8;
  layer.experts_per_token = 2;
  layer.expert_ffn = 2048;
  return layer;
}

LayerOps ops_of(const TransformerLayer& layer, const StackSpec& stack, ElementBytes bytes = kElementBytes) {
  LayerWork work{.microbatch = 2, .sequence = 512};
  work.experts.parallel = 2;
  return transformer_ops(layer, work, stack, bytes);
}

double named_traffic(const PassOps& pass, std::string_view name) {
  double sum = 0;
  for (const DeviceKernel& kernel : pass.kernels) {
    if (kernel.kind == DeviceKernel::Kind::kTraffic && kernel.name == name) sum += kernel.bytes;
  }
  return sum;
}

double routed_flops(const PassOps& pass) {
  double sum = 0;
  for (const DeviceKernel& kernel : pass.kernels) {
    if (kernel.routed && kernel.kind == DeviceKernel::Kind::kGemm) {
      sum += 2 * kernel.shape.m * kernel.shape.n * kernel.shape.k * kernel.shape.count;
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("routed kernels are the experts' products and what moves their tokens, not the router") {
  const LayerOps ops = ops_of(mixture(false, false), unfused());
  const double product = 2 * kMlpTokens * kPicks * kGptHidden * kFfn;
  CHECK(routed_flops(ops.forward) == 2 * product);
  CHECK(routed_flops(ops.input_grad) == 2 * product);
  CHECK(routed_flops(ops.weight_grad) == 2 * product);
  for (const DeviceKernel& kernel : ops.forward.kernels) {
    if (kernel.name == "router" || kernel.name == "qkv") CHECK_FALSE(kernel.routed);
    if (kernel.name == "permutation") CHECK(kernel.routed);
  }
}

TEST_CASE("biases of experts outside the products are passes in fp32, and clamped gates passes of their own") {
  StackSpec stack = unfused();
  stack.fused_expert_bias = false;
  const double results = kMlpTokens * kPicks * kGptHidden;
  const LayerOps ops = ops_of(mixture(true, true), stack);
  CHECK(named_traffic(ops.forward, "expert bias") == 28 * results);
  CHECK(named_traffic(ops.input_grad, "expert bias") == 40 * results);
  CHECK(named_traffic(ops.forward, "clamp") == 8 * kMlpTokens * kPicks * 2 * kFfn);
  CHECK(named_traffic(ops.input_grad, "clamp") == 10 * kMlpTokens * kPicks * 2 * kFfn);
  CHECK(named_traffic(ops_of(mixture(true, false), stack).forward, "expert bias") == 0);
  CHECK(named_traffic(ops_of(mixture(false, true), stack).forward, "clamp") == 0);
  CHECK(named_traffic(ops_of(mixture(true, true), unfused()).forward, "expert bias") == 0);
  for (const DeviceKernel& kernel : ops.forward.kernels) CHECK(kernel.biased == kernel.routed);
  for (const DeviceKernel& kernel : ops_of(mixture(true, false), stack).forward.kernels) CHECK_FALSE(kernel.biased);
}

TEST_CASE("under fp8 what no norm quantizes is quantized by kernels of its own, an expert at a time") {
  StackSpec stack = unfused();
  stack.expert_kernels = true;
  ElementBytes bytes = kElementBytes;
  bytes.cast = 4;
  const LayerOps ops = ops_of(mixture(false, false), stack, bytes);
  const double rows = kMlpTokens * kPicks;
  CHECK(named_traffic(ops.forward, "cast") == 4 * (kMlpTokens * kGptHidden + rows * kGptHidden + rows * kFfn));
  // Attention casts the gradients of the projection's result and of queries, keys and values.
  CHECK(named_traffic(ops.input_grad, "cast") == 4 * (kMlpTokens * 4 * kGptHidden + rows * kGptHidden + rows * kFfn));
  int launches = 0;
  for (const DeviceKernel& kernel : ops.forward.kernels) launches += kernel.name == "cast" ? kernel.launches : 0;
  CHECK(launches == 1 + 2 * 4);
  CHECK(named_traffic(ops_of(mixture(false, false), stack).forward, "cast") == 0);
}

TEST_CASE("the fullest rank computes and keeps more than the mean, as far as a capacity allows") {
  const auto load = [](double imbalance, double capacity, bool padded) {
    TransformerLayer layer = mixture(false, false);
    layer.capacity_factor = capacity;
    StackSpec stack = unfused();
    stack.expert_imbalance = imbalance;
    stack.padded_experts = padded;
    const double even = routed_flops(ops_of(mixture(false, false), unfused()).forward);
    return routed_flops(ops_of(layer, stack).forward) / even;
  };
  CHECK(load(1.5, 0, false) == doctest::Approx(1.5));
  CHECK(load(1.5, 1.25, false) == doctest::Approx(1.25));
  CHECK(load(1.1, 1.25, false) == doctest::Approx(1.1));
  CHECK(load(1, 0.75, false) == doctest::Approx(0.75));  // what is over it is dropped
  CHECK(load(1, 1.25, true) == doctest::Approx(1.25));
  CHECK(load(1.5, 0, true) == doctest::Approx(1.5));  // no capacity to pad to
}

}  // namespace plumb::test
