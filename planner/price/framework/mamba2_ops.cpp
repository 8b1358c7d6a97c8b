#include "planner/price/framework/mamba2_ops.h"

#include "planner/price/framework/pass_builder.h"
#include "planner/price/framework/tensor_exchange.h"

namespace plumb { inline namespace planner {
namespace {

struct Mamba2Context {
  const StackSpec& stack;
  ElementBytes bytes;
};

void add_product(const Mamba2Context& c, const PassBuilder& pass, const KernelCall& call) {
  const auto size = [&call](std::size_t i) { return static_cast<double>(call.shape[i]); };
  const auto form = static_cast<GemmForm>(call.shape[4]);
  if (form == GemmForm::kWeightGrad)
    return pass.weight_gradient("projection", size(0), size(1), size(2), c.stack.fused_accumulation);
  pass.cast(size(0) * size(2));
  pass.gemm("projection", size(0), size(1), size(2), form);
}

void add_kernel(const Mamba2Context& c, const PassBuilder& pass, const KernelCall& call) {
  if (call.kind == KernelKind::kGemm) return add_product(c, pass, call);
  const double bytes = call.elements_moved * c.bytes.activation;
  const bool forward = call.kind == KernelKind::kStateSpaceForward;
  if (!forward && call.kind != KernelKind::kStateSpaceBackward) return pass.traffic(kernel_name(call.kind), bytes);
  using enum DeviceKernel::Kind;
  pass.attention(kernel_name(call.kind), forward ? kAttentionForward : kAttentionBackward, call.flops,
                 static_cast<double>(call.shape[6]), bytes);
}

void add_kernels(const Mamba2Context& c, PassOps& pass, const std::vector<KernelCall>& calls) {
  for (const KernelCall& call : calls) add_kernel(c, {pass, c.bytes}, call);
}

}  // namespace

LayerOps mamba2_ops(const Mamba2Layer& layer, const LayerWork& work, const StackSpec& stack, ElementBytes bytes) {
  const LayerProgram program = layer_program(layer, work);
  const Mamba2Context context{stack, bytes};
  LayerOps ops;
  add_kernels(context, ops.forward, kernels_of(program, Pass::kForward));
  add_kernels(context, ops.input_grad, kernels_of(program, Pass::kInputGrad));
  add_kernels(context, ops.weight_grad, kernels_of(program, Pass::kWeightGrad));
  add_kernels(context, ops.rebuild_selective, recomputed_kernels(program, Recompute::kSelective));
  const double stream = static_cast<double>(work.microbatch * work.sequence * layer.hidden) / work.context_parallel;
  const StreamBytes moved{.summed = stream * bytes.activation, .gathered = stream * bytes.gathered};
  exchange_tensor({ops.forward, bytes}, work, stack, moved, 1, 1);
  exchange_tensor({ops.input_grad, bytes}, work, stack, moved, 1, 1);
  if (work.sequence_parallel && stack.regathered_inputs)
    exchange_tensor({ops.weight_grad, bytes}, work, stack, moved, 1, 0);
  ops.rebuild_full = ops.forward;
  return ops;
}

}}  // namespace plumb::planner
