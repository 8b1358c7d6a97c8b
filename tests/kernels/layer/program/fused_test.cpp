#include "kernels/layer/program/fused.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/kernels/layer/all_kinds.h"

namespace plumb::test {
namespace {

constexpr LayerWork kFusedWork{.microbatch = 2, .sequence = 32};

bool is_product(const KernelCall& call) {
  return call.kind == KernelKind::kGemm || call.kind == KernelKind::kExpertProducts ||
         call.kind == KernelKind::kRouterProduct;
}
double product_flops(const LayerProgram& program, Pass pass) {
  double flops = 0;
  for (const KernelCall& call : kernels_of(program, pass))
    if (is_product(call)) flops += call.flops;
  return flops;
}
double elements(const LayerProgram& program, Pass pass) {
  double sum = 0;
  for (const KernelCall& call : kernels_of(program, pass)) sum += call.elements_moved;
  return sum;
}
std::ptrdiff_t count_of(const LayerProgram& program, Pass pass, KernelKind kind) {
  const std::vector<KernelCall> calls = kernels_of(program, pass);
  return std::ranges::count(calls, kind, &KernelCall::kind);
}

}  // namespace

TEST_CASE("products that take in what follows them do the same products, and move fewer bytes in fewer kernels") {
  TransformerLayer mixture = small_gpt_block();
  mixture.qkv_bias = mixture.linear_bias = false;
  mixture.experts = 4;
  mixture.experts_per_token = 2;
  mixture.expert_ffn = 128;
  mixture.shared_ffn = 64;
  for (const TransformerLayer& block : {small_gpt_block(), mixture})
    for (const int ranks : {1, 2}) {
      LayerWork work = kFusedWork;
      work.tensor_parallel = ranks;
      work.sequence_parallel = ranks > 1;
      const LayerProgram plain = layer_program(block, work), joined = fused_program(block, work, false);
      for (const Pass pass : {Pass::kForward, Pass::kInputGrad, Pass::kWeightGrad})
        CHECK(product_flops(joined, pass) == product_flops(plain, pass));
      CHECK(steps_of(joined, Pass::kForward).size() < steps_of(plain, Pass::kForward).size());
      CHECK(elements(joined, Pass::kForward) < elements(plain, Pass::kForward));
      CHECK(steps_of(joined, Pass::kWeightGrad).size() <= steps_of(plain, Pass::kWeightGrad).size());
    }
}

TEST_CASE("what is rebuilt from GELU's input has GELU's own kernel, and a bias that ranks share one of its own") {
  const LayerProgram none = fused_program(small_gpt_block(), kFusedWork, false),
                     cheap = fused_program(small_gpt_block(), kFusedWork, true);
  CHECK(count_of(none, Pass::kForward, KernelKind::kActivationForward) == 0);
  CHECK(count_of(none, Pass::kForward, KernelKind::kBiasForward) == 0);
  CHECK(count_of(cheap, Pass::kForward, KernelKind::kActivationForward) == 1);
  LayerWork divided = kFusedWork;
  divided.tensor_parallel = 2;
  const auto of_divided = [&] { return fused_program(small_gpt_block(), divided, false); };
  CHECK(count_of(of_divided(), Pass::kForward, KernelKind::kBiasForward) == 1);
  CHECK(count_of(of_divided(), Pass::kWeightGrad, KernelKind::kBiasBackward) == 0);
  divided.sequence_parallel = true;  // then the bias's gradient sums a rank's own rows
  CHECK(count_of(of_divided(), Pass::kWeightGrad, KernelKind::kBiasBackward) == 2);
}

TEST_CASE("a joined step reads, writes and trains what its parts do, without what they pass on") {
  const LayerProgram program = fused_program(small_gpt_block(), kFusedWork, false);
  const std::span<const LayerStep> steps = steps_of(program, Pass::kForward);
  const auto named = [&](const char* name) { return *std::ranges::find(steps, name, &LayerStep::name); };
  const auto names = [&](const Positions& tensors) {
    std::string text;
    for (const int tensor : tensors) text += program.tensors[static_cast<std::size_t>(tensor)].name + "; ";
    return text;
  };
  const LayerStep up = named("up, up bias, activation");
  CHECK(names(up.reads) == "norm2 output; ");
  CHECK(names(up.writes) == "up; activation; ");
  CHECK(up.parameters.size() == 2);
  CHECK(up.call()->shape[4] == static_cast<std::int64_t>(GemmForm::kForwardGelu));
  const LayerStep norm = named("residual, norm2");
  CHECK(names(norm.reads) == "input; attention branch; ");
  CHECK(names(norm.writes) == "residual; norm2 output; norm2 deviations; norm2 means; ");
}

}  // namespace plumb::test
