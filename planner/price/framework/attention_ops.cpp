#include "planner/price/framework/attention_ops.h"
#include "planner/spec/training_spec.h"

#include <algorithm>
#include <span>

namespace plumb { inline namespace planner {
namespace {

using enum GemmForm;

double score_bytes(const LayerContext& c) {
  return static_cast<double>(c.work.microbatch) * c.sizes.heads * static_cast<double>(c.work.sequence) *
         static_cast<double>(c.work.sequence) / c.work.context_parallel * c.bytes.activation;
}

/// Kernels of scale, mask and the conversions to fp32 and back, where softmax is not fused.
constexpr int kUnfusedLaunches = 10;

/// The fused softmax's kernel works on blocks of rows of batch times heads.
bool softmax_is_fused(const LayerContext& c) {
  if (!c.stack.fused_softmax) return false;
  const auto rows = static_cast<std::int64_t>(static_cast<double>(c.work.microbatch) * c.sizes.heads + .5);
  return c.stack.fused_softmax_rows == 0 || rows % c.stack.fused_softmax_rows == 0;
}

constexpr std::string_view kQkv = "qkv";

bool is_core(const LayerStep& step) {
  using enum KernelKind;
  return step.is(kAttentionForward) || step.is(kAttentionBackward) || step.is(kLatentAttentionForward) ||
         step.is(kLatentAttentionBackward);
}

/// Adds a step of the layer's program beside attention's core. A framework's products include biases, and its norms move
/// their input and output once, or its gradients twice.
void add_step(const LayerContext& c, const PassBuilder& pass, const LayerStep& step) {
  if (const Exchange* exchange = step.exchange()) {
    const bool is_sum_of_rows = exchange->type == StoredType::kSingle && step.gradients.empty();
    if (is_sum_of_rows)  // of a norm whose channels are divided; the framework has other exchanges of its own
      pass.exchange(Group::kTensor, CollectiveKind::kAllReduce, kFp32Bytes * static_cast<double>(exchange->elements));
    return;
  }
  const KernelCall& call = *step.call();
  const std::vector<std::int64_t>& shape = call.shape;
  const auto size = [&shape](std::size_t i) { return static_cast<double>(shape[i]); };
  const double a = c.bytes.activation;
  switch (call.kind) {
    case KernelKind::kGemm: {
      const auto form = static_cast<GemmForm>(shape[4]);
      // Gradients are summed beside the product of queries, keys and values (layer_price.h), so that it has its name.
      const std::string_view name = step.name == kQkv ? kQkv : "projection";
      if (form == kWeightGrad)
        pass.weight_gradient(name, size(0), size(1), size(2), c.stack.fused_accumulation);
      else
        pass.gemm(name, size(0), size(1), size(2), form);
      return;
    }
    case KernelKind::kNormForward:
      return pass.traffic("norm", 2 * size(0) * size(1) * a);
    case KernelKind::kNormBackward:
      return pass.traffic("norm", 4 * size(0) * size(1) * a);
    case KernelKind::kRotary:
      return pass.traffic("rope", call.elements_moved * a);
    case KernelKind::kJoinHeads:
    case KernelKind::kSplitHeads:
      return pass.traffic("keys joined", 2 * c.sizes.tokens * c.sizes.query * a);
    case KernelKind::kResidualAdd:
      return pass.traffic("gradients of both summed", call.elements_moved * a);
    default:
      return;
  }
}

/// Returns the steps of attention in a pass, with its core.
std::span<const LayerStep> attention_steps(const LayerContext& c, Pass of) {
  const std::span<const LayerStep> steps = steps_of(c.program, of);
  const auto first = std::ranges::find(steps, Section::kAttention, &LayerStep::section);
  const auto last =
      std::find_if(first, steps.end(), [](const LayerStep& step) { return step.section != Section::kAttention; });
  return {first, last};
}

double core_flops(const LayerContext& c) {
  const auto head = static_cast<double>(c.layer.head_size);
  const double value = c.sizes.value / c.sizes.heads;
  return 2 * static_cast<double>(c.work.microbatch) * c.sizes.heads *
         attention_pairs(c.layer, c.work, c.stack.causal_skipped) * (head + value);
}

double core_bytes(const LayerContext& c) {
  return (c.sizes.qkv + c.sizes.value) * c.sizes.tokens * c.bytes.activation;
}

/// Returns the number of blocks of keys and values with which a rank computes attention one after the other. Each but
/// the first is weighed into the sum by a kernel of its own (NVIDIA/TransformerEngine
/// transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py, AttnFuncWithCPAndKVP2P).
int core_blocks(const LayerContext& c) {
  return c.stack.context == ContextKind::kRing ? c.work.context_parallel : 1;
}

int core_launches(const LayerContext& c) {
  return 2 * core_blocks(c) - 1;
}

// In a causal ring a rank holds an early and a late chunk of the sequence. With half of the further blocks all its queries
// meet the early chunk's keys, and with the others the late chunk's queries meet all keys.
constexpr double kRingShare = (1 + .5) / 2;       ///< of the queries, or of a block's keys, that meet
constexpr double kRingReciprocal = (1 + .5) / 2;  ///< of a further block's length over that of the own block's

/// Returns the length of a sequence whose causal attention fills the device as the blocks do. A device is as full as by
/// causal attention of a block's length where queries meet half the keys, and of twice that where they meet all. Times
/// are as the reciprocals. Without a mask each block is as long as it is.
double core_sequence(const LayerContext& c) {
  const double further = core_blocks(c) - 1;
  const auto whole = static_cast<double>(c.work.sequence);
  return whole / (1 + (c.stack.causal_skipped ? kRingReciprocal : 1) * further);
}

/// Returns the bytes that summing tensors of `elements` over the blocks moves: the first is copied, each further one
/// is read and added.
double summed_blocks(const LayerContext& c, double elements) {
  const double share = c.stack.causal_skipped ? kRingShare : 1;
  return (2 + 3 * share * (core_blocks(c) - 1)) * elements * c.bytes.activation;
}

double kv_bytes(const LayerContext& c) {
  const double channels = c.stack.repeated_heads ? c.sizes.query + c.sizes.value : c.sizes.qkv - c.sizes.query;
  return channels * c.sizes.tokens * c.bytes.activation;
}

/// Adds the collectives of a context-parallel group for one pass over the core. A ring moves as much as an all-gather.
void exchange_context(const LayerContext& c, const PassBuilder& pass, bool backward) {
  if (c.work.context_parallel == 1) return;
  if (c.stack.context == ContextKind::kUlysses) {
    pass.exchange(Group::kContext, CollectiveKind::kAllToAll,
                  (c.sizes.qkv + c.sizes.value) * c.sizes.tokens * c.bytes.activation);
    return;
  }
  const double gathered = kv_bytes(c) * c.work.context_parallel;
  pass.exchange(Group::kContext, CollectiveKind::kAllGather, gathered);
  if (backward) pass.exchange(Group::kContext, CollectiveKind::kReduceScatter, gathered);
}

}  // namespace

void attention_inputs_forward(const LayerContext& c, const PassBuilder& pass) {
  for (const LayerStep& step : attention_steps(c, Pass::kForward)) {
    if (is_core(step)) return;
    add_step(c, pass, step);
  }
}

void attention_inputs_rebuild(const LayerContext& c, const PassBuilder& pass) {
  if (c.layer.kv_rank > 0) {
    attention_inputs_forward(c, pass);
    return;
  }
  pass.gemm("keys", c.sizes.tokens, c.sizes.kv_heads * static_cast<double>(c.layer.head_size),
            static_cast<double>(c.layer.hidden));
  for (const LayerStep& step : attention_steps(c, Pass::kForward))
    if (step.is(KernelKind::kRotary) || step.is(KernelKind::kNormForward)) add_step(c, pass, step);
}

void attention_inputs_input_grad(const LayerContext& c, const PassBuilder& pass) {
  const std::span<const LayerStep> steps = attention_steps(c, Pass::kInputGrad);
  for (auto step = std::ranges::find_if(steps, is_core) + 1; step != steps.end(); ++step) {
    if (c.layer.kv_rank == 0 && step->is(KernelKind::kGemm)) {
      const double gradient = c.sizes.tokens * c.sizes.qkv;
      pass.traffic("qkv gradients joined", (c.layer.qkv_bias ? 3 : 2) * gradient * c.bytes.activation);
      pass.cast(gradient);
    }
    add_step(c, pass, *step);
  }
}

void attention_weight_grad(const LayerContext& c, const PassBuilder& pass) {
  for (const LayerStep& step : attention_steps(c, Pass::kWeightGrad)) add_step(c, pass, step);
}

void attention_core_forward(const LayerContext& c, const PassBuilder& pass) {
  exchange_context(c, pass, false);
  if (c.stack.attention != AttentionKernel::kUnfused) {
    pass.attention("attention", DeviceKernel::Kind::kAttentionForward, core_flops(c), core_sequence(c),
                   core_blocks(c) * core_bytes(c), core_launches(c));
    if (core_blocks(c) > 1) pass.traffic("blocks weighed", summed_blocks(c, c.sizes.value * c.sizes.tokens), 0);
    return;
  }
  const auto s = static_cast<double>(c.work.sequence);
  const auto d = static_cast<double>(c.layer.head_size);
  const double batch = static_cast<double>(c.work.microbatch) * c.sizes.heads;
  const double scores = score_bytes(c);
  pass.batched("scores", s / c.work.context_parallel, s, d, batch, d);
  pass.traffic("softmax", 2 * scores);
  if (!softmax_is_fused(c)) pass.traffic("scale, mask, casts", 6 * scores, kUnfusedLaunches);
  if (c.layer.dropout > 0) pass.traffic("attention dropout", 2.5 * scores);
  pass.batched("context", s / c.work.context_parallel, d, s, batch, d);
  pass.traffic("context copied", 2 * c.sizes.value * c.sizes.tokens * c.bytes.activation);
}

void attention_core_backward(const LayerContext& c, const PassBuilder& pass) {
  exchange_context(c, pass, true);
  if (c.stack.attention != AttentionKernel::kUnfused) {
    pass.attention("attention", DeviceKernel::Kind::kAttentionBackward, 2.5 * core_flops(c), core_sequence(c),
                   2 * core_blocks(c) * core_bytes(c), core_launches(c));
    if (core_blocks(c) > 1)
      pass.traffic("gradients of blocks summed", summed_blocks(c, c.sizes.qkv * c.sizes.tokens), 0);
    return;
  }
  const auto s = static_cast<double>(c.work.sequence);
  const auto d = static_cast<double>(c.layer.head_size);
  const double batch = static_cast<double>(c.work.microbatch) * c.sizes.heads;
  const double scores = score_bytes(c);
  const double rows = s / c.work.context_parallel;
  pass.batched("gradient of probabilities", rows, s, d, batch, d);
  pass.batched("gradient of values", s, d, rows, batch, d);
  if (c.layer.dropout > 0) pass.traffic("attention dropout", 2.5 * scores);
  pass.traffic("softmax", 3 * scores);
  if (!softmax_is_fused(c)) pass.traffic("scale, mask, casts", 6 * scores, kUnfusedLaunches);
  pass.batched("gradient of queries", rows, d, s, batch, d);
  pass.batched("gradient of keys", s, d, rows, batch, d);
}

}}  // namespace plumb::planner
