#include "executor/layers/device/ring_attention.h"

#include <utility>

#include "executor/layers/device/attention_gradients.h"
#include "executor/layers/device/attention_operands.h"

namespace plumb { inline namespace executor {
namespace {

RunsOfTokens runs_of(const TokenRange& shared, const ContextSeat& seat, int rank) {
  ContextSeat of = seat;
  of.rank = rank;
  const ContextTokens tokens = context_tokens(shared, of);
  return {.first = tokens.first.first, .second = tokens.second.first, .split = tokens.first.count};
}

}  // namespace

RingAttention::RingAttention(const AttentionSize& size, const DeviceSeat& seat, std::int64_t element_bytes,
                             DeviceLayerBytes& bytes)
    : size_(size),
      seat_(seat),
      before_(seat.slice.first / seat.context.ranks),
      kept_(seat.sequence / seat.context.ranks),
      element_bytes_(element_bytes) {
  if (!seat.is_sliced()) return;
  const std::int64_t kept = size.batch * kept_ * key_columns();
  kept_at_ = bytes.sequences;
  bytes.sequences += aligned_bytes(kept * element_bytes);
  bytes.sequence_gradients = aligned_bytes(kept * std::int64_t{sizeof(float)});
}

RingAttention::Room RingAttention::room_of(const StepCall& of) {
  return {.outgoing = of.written(2), .incoming = of.written(3), .sums = of.floats_written(4)};
}

void RingAttention::enqueue(const StepCall& of, const AttentionSize& size) const {
  if (of.is_forward()) return forward(of, size);
  backward(of, size);
}

/// Calls visit(piece) for the slices so far of the block that has come `step` steps round the ring. The block belongs
/// to the rank that is `step` ranks before this one.
template <class Visit>
void RingAttention::for_each_piece(const AttentionSize& size, int step, Visit visit) const {
  const ContextSeat& ring = seat_.context;
  const int owner = (ring.rank - step + ring.ranks) % ring.ranks;
  for (int slice = 0; slice <= seat_.slice_number; ++slice) {
    const TokenRange shared = slice_tokens(seat_.sequence, seat_.slices, slice);
    visit(Piece{.first_row = shared.first / ring.ranks,
                .is_last = step + 1 == ring.ranks && slice == seat_.slice_number,
                .block = {.size = size,
                          .queries = runs_of(seat_.slice, ring, ring.rank),
                          .keys = runs_of(shared, ring, owner),
                          .is_first = step == 0 && slice == 0,
                          .key_rows = shared.count / ring.ranks,
                          .key_stride = block_rows()}});
  }
}

/// Keeps the slice's keys and values for later slices.
void RingAttention::keep(const StepCall& of) const {
  for (std::int64_t i = 0; i < size_.batch; ++i)
    of.kernels().copy_columns(of.call.sequences + kept_at_ + (i * kept_ + before_) * key_columns() * element_bytes_,
                              key_columns(),
                              of.read(0) + (i * size_.sequence * width() + query_columns()) * element_bytes_, width(),
                              {size_.sequence, key_columns()});
}

/// Calls attend(step, keys and values) for each rank's block, this rank's first.
template <class Attend>
void RingAttention::pass_round(const StepCall& of, Attend attend) const {
  const Room room = room_of(of);
  std::byte *current = room.outgoing, *next = room.incoming;
  const std::int64_t row = key_columns() * element_bytes_;
  if (seat_.is_sliced())
    for (std::int64_t i = 0; i < size_.batch; ++i)
      of.kernels().copy(current + i * block_rows() * row, of.call.sequences + kept_at_ + i * kept_ * row,
                        block_rows() * row);
  else
    of.kernels().copy_columns(current, key_columns(), of.read(0) + query_columns() * element_bytes_, width(),
                              {rows(), key_columns()});
  for (int step = 0; step < seat_.context.ranks; ++step) {
    const bool is_last = step + 1 == seat_.context.ranks;
    if (!is_last) of.call.context.shift(next, current, block_elements());
    attend(step, current);
    std::swap(current, next);
  }
}

AttentionOperands RingAttention::operands_in(const StepCall& of, const Piece& piece,
                                             const std::byte* keys_values) const {
  AttentionOperands operands = operands_of(of, piece.block);
  operands.keys_values = keys_values + piece.first_row * key_columns() * element_bytes_;
  if (!piece.is_last) operands.dsinks = nullptr;
  return operands;
}

void RingAttention::forward(const StepCall& of, const AttentionSize& size) const {
  if (seat_.is_sliced()) keep(of);
  pass_round(of, [&](int step, const std::byte* keys_values) {
    for_each_piece(size, step, [&](const Piece& piece) {
      of.kernels().attention_forward(piece.is_last ? of.written(0) : nullptr, room_of(of).sums, of.floats_written(1),
                                     operands_in(of, piece, keys_values));
    });
  });
}

/// The gradients of a block follow it round the ring, and at last reach the rank that owns it.
void RingAttention::backward(const StepCall& of, const AttentionSize& size) const {
  const AttentionGradients tensors(of);
  float *gradients = of.floats_written(5), *arriving = of.floats_written(6);
  const auto go_on = [&] {
    of.call.context.shift_singles(arriving, gradients, block_elements());
    std::swap(gradients, arriving);
  };
  of.kernels().fill_zero(gradients, block_elements());
  pass_round(of, [&](int step, const std::byte* keys_values) {
    if (step > 0) go_on();
    for_each_piece(size, step, [&](const Piece& piece) {
      of.kernels().attention_backward(
          piece.is_last ? tensors.dqkv : nullptr, gradients + piece.first_row * key_columns(), room_of(of).sums,
          tensors.products, tensors.doutput, tensors.output, tensors.log_sum_exp, operands_in(of, piece, keys_values));
    });
  });
  go_on();
  write_gradients(of, tensors.dqkv + query_columns() * element_bytes_, gradients);
}

/// Writes the gradients of the own keys and values; slices add them up first.
void RingAttention::write_gradients(const StepCall& of, std::byte* dqkv, const float* gradients) const {
  DeviceKernels& kernels = of.kernels();
  if (!seat_.is_sliced()) return kernels.narrow_columns(dqkv, width(), gradients, {rows(), key_columns()});
  for (std::int64_t i = 0; i < size_.batch; ++i) {
    float* const sums = of.call.sequence_gradients + i * kept_ * key_columns();
    kernels.add_gradients(sums, sums, gradients + i * block_rows() * key_columns(), block_rows() * key_columns());
    kernels.narrow_columns(dqkv + i * size_.sequence * width() * element_bytes_, width(),
                           sums + before_ * key_columns(), {size_.sequence, key_columns()});
  }
}

}}  // namespace plumb::executor
