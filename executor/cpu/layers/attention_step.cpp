#include "executor/cpu/layers/attention_step.h"

#include <algorithm>
#include <variant>

#include "executor/cpu/layers/local_attention.h"
#include "executor/cpu/layers/ring_attention.h"

namespace plumb { inline namespace executor {
namespace {

bool is_ring(const ContextSeat& seat) {
  return seat.ranks > 1 && seat.attention == ContextAttention::kRing;
}

/// Returns the size of the heads and tokens that a rank attends to.
AttentionSize size_of(const TransformerLayer& block, const LayerWork& own, const LayerSeat& seat) {
  AttentionSize size{.batch = own.microbatch,
                     .sequence = own.sequence,
                     .heads = block.heads,
                     .kv_heads = block.kv_heads,
                     .head_size = block.head_size,
                     .window = block.window};
  size.dropout.first_head = seat.tensor.rank * block.heads;
  if (is_ring(seat.context)) return size;
  size.sequence *= seat.context.ranks;
  size.heads /= seat.context.ranks;
  size.kv_heads /= seat.context.ranks;
  size.dropout.first_head += seat.context.rank * size.heads;
  return size;
}

}  // namespace

std::int64_t attention_scratch_of(const HostProgram& program, const LayerSeat& seat) {
  const auto* block = std::get_if<TransformerLayer>(&program.share());
  if (block == nullptr) return 0;
  LayerWork own = program.work();
  own.sequence = own.whole() / seat.context.ranks;
  const AttentionSize size = size_of(*block, own, seat);
  if (!is_ring(seat.context)) return attention_scratch_elements(size);
  return std::max(attention_scratch_elements(size),
                  ring_attention_scratch_elements(size, program.work().whole(), seat.context));
}

void attend(const HostStep& of) {
  const CpuContext& context = of.context();
  const auto& block = std::get<TransformerLayer>(of.program.share());
  AttentionSize size = size_of(block, context.work, context.seat);
  size.dropout.probability = block.dropout;
  size.dropout.key = of.call.dropout_key(kProbabilities);
  size.dropout.first_sample = of.call.place.first_sample;
  SequenceSaved* const sequence = of.call.sequence;
  const ContextSeat& seat = context.seat.context;
  if (of.is_forward()) {
    if (is_ring(seat))
      return ring_attention_forward(context, size, seat, sequence, of.written(0), of.written(1), of.read(0));
    return local_attention_forward(context, size, sequence, of.written(0), of.written(1), of.read(0));
  }
  const float *const qkv = of.read(0), *const doutput = of.read(1), *const output = of.read(2);
  if (is_ring(seat))
    return ring_attention_backward(context, size, seat, sequence, of.written(0), doutput, qkv, output, of.read(3));
  local_attention_backward(context, size, sequence, of.written(0), doutput, qkv, output, of.read(3));
}

}}  // namespace plumb::executor
