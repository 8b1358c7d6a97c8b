#include "executor/layers/host/attention_step.h"

#include <algorithm>
#include <variant>

#include "executor/layers/host/local_attention.h"
#include "executor/layers/host/ring_attention.h"
#include "kernels/cpu/attention/sinks.h"

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
                     .kv_heads = block.kv_rank > 0 ? block.heads : block.kv_heads,
                     .head_size = block.head_size,
                     .window = block.window,
                     .value_size = block.kv_rank > 0 ? block.value_size : 0,
                     .softcap = static_cast<float>(block.attention_softcap)};
  size.dropout.first_head = seat.tensor.rank * block.heads;
  if (is_ring(seat.context)) return size;
  size.sequence *= seat.context.ranks;
  size.heads /= seat.context.ranks;
  size.kv_heads /= seat.context.ranks;
  size.dropout.first_head += seat.context.rank * size.heads;
  return size;
}

AttentionSize size_in(const HostStep& of) {
  const auto& block = std::get<TransformerLayer>(of.program.share());
  AttentionSize size = size_of(block, of.context().work, of.context().seat);
  size.dropout.probability = block.dropout;
  size.dropout.key = of.call.dropout_key(kProbabilities);
  size.dropout.first_sample = of.call.place.first_sample;
  return size;
}

/// Returns the first of the heads that this rank attends to among those whose sinks it has.
std::int64_t first_own_head(const HostStep& of, const AttentionSize& size) {
  return size.dropout.first_head - of.context().seat.tensor.rank * std::get<TransformerLayer>(of.program.share()).heads;
}

void forward(const HostStep& of, const AttentionSize& size) {
  const CpuContext& context = of.context();
  const ContextSeat& seat = context.seat.context;
  if (is_ring(seat))
    ring_attention_forward(context, size, seat, of.call.sequence, of.written(0), of.written(1), of.read(0));
  else
    local_attention_forward(context, size, of.call.sequence, of.written(0), of.written(1), of.read(0));
  if (const float* sinks = of.weight(0); sinks != nullptr)
    add_sinks(of.written(0), of.written(1), sinks + first_own_head(of, size), size);
}

void backward(const HostStep& of, const AttentionSize& size) {
  const CpuContext& context = of.context();
  const ContextSeat& seat = context.seat.context;
  const float *const qkv = of.read(0), *const doutput = of.read(1), *const output = of.read(2);
  const float* const log_sum_exp = of.read(3);
  if (const float* sinks = of.weight(0); sinks != nullptr) {
    const std::int64_t head = first_own_head(of, size);
    sinks_backward(of.gradient(0) + head, doutput, output, log_sum_exp, sinks + head, size);
  }
  if (is_ring(seat))
    return ring_attention_backward(context, size, seat, of.call.sequence, of.written(0), doutput, qkv, output,
                                   log_sum_exp);
  local_attention_backward(context, size, of.call.sequence, of.written(0), doutput, qkv, output, log_sum_exp);
}

}  // namespace

std::int64_t attention_scratch_of(const HostProgram& program, const LayerSeat& seat) {
  const auto* block = std::get_if<TransformerLayer>(&program.share());
  if (block == nullptr || block->heads == 0) return 0;
  LayerWork own = program.work();
  own.sequence = own.whole() / seat.context.ranks;
  const AttentionSize size = size_of(*block, own, seat);
  if (!is_ring(seat.context)) return attention_scratch_elements(size);
  return std::max(attention_scratch_elements(size),
                  ring_attention_scratch_elements(size, program.work().whole(), seat.context));
}

void attend(const HostStep& of) {
  const AttentionSize size = size_in(of);
  if (of.is_forward()) return forward(of, size);
  backward(of, size);
}

}}  // namespace plumb::executor
