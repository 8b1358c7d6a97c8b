#include "planner/price/framework/vocabulary_ops.h"

#include "planner/price/framework/norm_traffic.h"
#include "planner/price/framework/pass_builder.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {
namespace {

struct Ends {
  double tokens = 0;
  double stream_bytes = 0;    // E
  double residual_bytes = 0;  // Es
  double rows = 0;            // V / t, padded
};

Ends ends_of(std::int64_t vocab, std::int64_t hidden, const LayerWork& work, const StackSpec& stack,
             ElementBytes bytes) {
  Ends ends;
  ends.tokens = static_cast<double>(work.microbatch * work.sequence) / work.context_parallel;
  ends.stream_bytes = ends.tokens * static_cast<double>(hidden) * bytes.activation;
  ends.residual_bytes = work.sequence_parallel ? ends.stream_bytes / work.tensor_parallel : ends.stream_bytes;
  ends.rows = static_cast<double>(padded_vocab(stack, vocab, work.tensor_parallel)) / work.tensor_parallel;
  return ends;
}

}  // namespace

LayerOps embedding_ops(const EmbeddingLayer& layer, const LayerWork& work, const StackSpec& stack, ElementBytes bytes) {
  const Ends ends = ends_of(layer.vocab, layer.hidden, work, stack, bytes);
  LayerOps ops;
  const PassBuilder forward(ops.forward, bytes);
  forward.traffic("lookup", 2 * ends.stream_bytes);
  if (layer.positions > 0) forward.traffic("positions", 3 * ends.stream_bytes);
  if (layer.dropout > 0) forward.traffic("dropout", 2.5 * ends.residual_bytes);
  const PassBuilder backward(ops.weight_grad, bytes);
  if (layer.dropout > 0) backward.traffic("dropout", 2.5 * ends.residual_bytes);
  backward.traffic("rows summed", 2 * ends.stream_bytes);
  const double table_bytes = bytes.activation + bytes.accumulated;  // zeroed, then added to the buffer
  backward.traffic("table gradient", table_bytes * ends.rows * static_cast<double>(layer.hidden));
  if (work.tensor_parallel > 1) {
    forward.exchange(Group::kTensor,
                     work.sequence_parallel ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce,
                     ends.stream_bytes);
    if (work.sequence_parallel) backward.exchange(Group::kTensor, CollectiveKind::kAllGather, ends.stream_bytes);
  }
  return ops;
}

LayerOps head_ops(const HeadLayer& layer, const LayerWork& work, const StackSpec& stack, ElementBytes bytes) {
  const Ends ends = ends_of(layer.vocab, layer.hidden, work, stack, bytes);
  const auto h = static_cast<double>(layer.hidden);
  const double logits = ends.tokens * ends.rows * bytes.activation;
  constexpr double kUnfusedForward = 19;
  constexpr double kUnfusedBackward = 7;
  LayerOps ops;
  const PassBuilder forward(ops.forward, bytes);
  forward.traffic("norm", norm_forward_crossings(stack) * ends.residual_bytes);
  forward.gemm("logits", ends.tokens, ends.rows, h);
  forward.widen_last();
  forward.align_last(ends.rows);
  forward.traffic("cross-entropy", (stack.fused_cross_entropy ? 1 : kUnfusedForward) * logits);
  const PassBuilder input_grad(ops.input_grad, bytes);
  input_grad.traffic("cross-entropy", (stack.fused_cross_entropy ? 2 : kUnfusedBackward) * logits);
  input_grad.gemm("logits", ends.tokens, h, ends.rows, GemmForm::kInputGrad);
  input_grad.widen_last();
  input_grad.align_last(ends.rows);
  input_grad.traffic("norm", norm_backward_crossings(stack) * ends.residual_bytes);
  const PassBuilder weight_grad(ops.weight_grad, bytes);
  weight_grad.weight_gradient("logits", ends.rows, h, ends.tokens, stack.fused_accumulation);
  weight_grad.widen_last();
  weight_grad.align_last(ends.rows);
  if (work.tensor_parallel > 1) {
    forward.exchange(Group::kTensor, CollectiveKind::kAllReduce, ends.tokens * kFp32Bytes, 3);
    if (work.sequence_parallel) {
      forward.exchange(Group::kTensor, CollectiveKind::kAllGather, ends.stream_bytes);
      input_grad.exchange(Group::kTensor, CollectiveKind::kReduceScatter, ends.stream_bytes);
      weight_grad.exchange(Group::kTensor, CollectiveKind::kAllGather, ends.stream_bytes);
    } else {
      input_grad.exchange(Group::kTensor, CollectiveKind::kAllReduce, ends.stream_bytes);
    }
  }
  return ops;
}

}}  // namespace plumb::planner
