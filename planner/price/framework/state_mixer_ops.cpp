#include "planner/price/framework/state_mixer_ops.h"

#include "planner/price/framework/pass_builder.h"
#include "planner/price/framework/tensor_exchange.h"

namespace plumb { inline namespace planner {
namespace {

struct MixerContext {
  const StackSpec& stack;
  ElementBytes bytes;
  bool is_beside_attention = false;
};

void add_product(const MixerContext& c, const PassBuilder& pass, const KernelCall& call) {
  const auto size = [&call](std::size_t i) { return static_cast<double>(call.shape[i]); };
  const auto form = static_cast<GemmForm>(call.shape[4]);
  if (form == GemmForm::kWeightGrad)
    return pass.weight_gradient("projection", size(0), size(1), size(2), c.stack.fused_accumulation);
  pass.cast(size(0) * size(2));
  pass.gemm("projection", size(0), size(1), size(2), form);
}

/// True for the products of a chunk's tokens, which are bound by FLOPs.
bool is_in_chunks(KernelKind kind) {
  using enum KernelKind;
  return kind == kStateSpaceForward || kind == kStateSpaceBackward || kind == kDeltaRuleForward ||
         kind == kDeltaRuleBackward;
}

void add_kernel(const MixerContext& c, const PassBuilder& pass, const KernelCall& call) {
  using enum KernelKind;
  if (call.kind == kGemm) return add_product(c, pass, call);
  if (c.is_beside_attention && (call.kind == kNormForward || call.kind == kNormBackward)) return;
  const double bytes = call.elements_moved * c.bytes.activation;
  if (!is_in_chunks(call.kind)) return pass.traffic(kernel_name(call.kind), bytes);
  const bool forward = call.kind == kStateSpaceForward || call.kind == kDeltaRuleForward;
  pass.attention(kernel_name(call.kind),
                 forward ? DeviceKernel::Kind::kAttentionForward : DeviceKernel::Kind::kAttentionBackward, call.flops,
                 static_cast<double>(call.shape.back()), bytes);
}

void add_kernels(const MixerContext& c, PassOps& pass, const std::vector<KernelCall>& calls) {
  for (const KernelCall& call : calls) add_kernel(c, {pass, c.bytes}, call);
}

/// Adds the sums of tensors besides the stream, which Mamba's mixer has.
void add_inner_sums(const MixerContext& c, PassOps& pass, const std::vector<Exchange>& exchanges, double stream) {
  for (const Exchange& exchange : exchanges) {
    const auto elements = static_cast<double>(exchange.elements);
    const bool is_inner = exchange.kind == ExchangeKind::kAllReduce && exchange.type == StoredType::kElement;
    if (is_inner && elements != stream)
      PassBuilder(pass, c.bytes).exchange(Group::kTensor, CollectiveKind::kAllReduce, elements * c.bytes.activation);
  }
}

}  // namespace

LayerOps state_mixer_ops(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                         ElementBytes bytes) {
  const LayerProgram program = layer_program(states_alone(layer), work);
  const MixerContext context{stack, bytes, layer.heads > 0};
  LayerOps ops;
  add_kernels(context, ops.forward, kernels_of(program, Pass::kForward));
  add_kernels(context, ops.input_grad, kernels_of(program, Pass::kInputGrad));
  add_kernels(context, ops.weight_grad, kernels_of(program, Pass::kWeightGrad));
  add_kernels(context, ops.rebuild_selective, recomputed_kernels(program, Recompute::kSelective));
  const double stream = static_cast<double>(work.microbatch * work.sequence * layer.hidden) / work.context_parallel;
  const StreamBytes moved{.summed = stream * bytes.activation, .gathered = stream * bytes.gathered};
  exchange_tensor({ops.forward, bytes}, work, stack, moved, 1, 1);
  exchange_tensor({ops.input_grad, bytes}, work, stack, moved, 1, 1);
  add_inner_sums(context, ops.forward, exchanges_of(program, Pass::kForward), stream);
  add_inner_sums(context, ops.input_grad, exchanges_of(program, Pass::kInputGrad), stream);
  if (work.sequence_parallel && stack.regathered_inputs)
    exchange_tensor({ops.weight_grad, bytes}, work, stack, moved, 1, 0);
  ops.rebuild_full = ops.forward;
  return ops;
}

}}  // namespace plumb::planner
