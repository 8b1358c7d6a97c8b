#include "executor/layers/device/attention_step.h"

#include <variant>

#include "executor/layers/device/attention_gradients.h"
#include "executor/layers/device/attention_operands.h"

namespace plumb { inline namespace executor {

AttentionStep::AttentionStep(const PlacedProgram& program, DeviceLayerBytes& bytes) {
  const auto& block = std::get<TransformerLayer>(program.share());
  const DeviceSeat& seat = program.seat();
  const LayerWork& own = program.own();
  size_ = {.batch = own.microbatch,
           .sequence = own.sequence,
           .heads = block.heads,
           .kv_heads = block.kv_rank > 0 ? block.heads : block.kv_heads,
           .head_size = block.head_size,
           .window = block.window,
           .value_size = block.kv_rank > 0 ? block.value_size : 0,
           .softcap = static_cast<float>(block.attention_softcap)};
  dropout_ = block.dropout;
  first_head_ = seat.tensor.rank * block.heads;
  if (seat.context.ranks > 1 && seat.context.attention == ContextAttention::kRing) {
    ring_.emplace(size_, seat, program.element_bytes(), bytes);
    return;
  }
  size_.sequence *= seat.context.ranks;
  size_.heads /= seat.context.ranks;
  size_.kv_heads /= seat.context.ranks;
  first_sink_ = seat.context.rank * size_.heads;
  first_head_ += first_sink_;
  if (seat.is_sliced()) slices_.emplace(size_, first_sink_, seat, program.element_bytes(), bytes);
}

AttentionSize AttentionStep::size_in(const StepCall& of) const {
  AttentionSize size = size_;
  size.dropout = {.probability = dropout_,
                  .key = of.call.dropout_key(kProbabilities),
                  .first_sample = of.call.first_sample,
                  .first_head = first_head_};
  return size;
}

void AttentionStep::enqueue(const StepCall& of) const {
  const AttentionSize size = size_in(of);
  if (ring_) return ring_->enqueue(of, size);
  if (slices_) return slices_->enqueue(of, size);
  const AttentionOperands operands = operands_of(of, block_of_whole(size), first_sink_);
  if (of.is_forward()) return of.kernels().attention_forward(of.written(0), nullptr, of.floats_written(1), operands);
  const AttentionGradients tensors(of);
  of.kernels().attention_backward(tensors.dqkv, nullptr, nullptr, tensors.products, tensors.doutput, tensors.output,
                                  tensors.log_sum_exp, operands);
}

}}  // namespace plumb::executor
