#include "executor/device/layers/context_attention.h"

#include <utility>

namespace plumb { inline namespace executor {
namespace {

RunsOfTokens runs_of(const TokenRange& shared, const ContextSeat& seat, int rank) {
  ContextSeat of = seat;
  of.rank = rank;
  const ContextTokens tokens = context_tokens(shared, of);
  return {.first = tokens.first.first, .second = tokens.second.first, .split = tokens.first.count};
}

}  // namespace

DeviceContextAttention::DeviceContextAttention(const AttentionSize& size, const DeviceTensorShare& share,
                                               std::int64_t element_bytes, std::int64_t& forward_workspace,
                                               std::int64_t& backward_workspace, DeviceLayerBytes& bytes)
    : size_(size),
      share_(share),
      seat_(share.context),
      before_(share.slice.first / seat_.ranks),
      kept_(share.sequence / seat_.ranks),
      element_bytes_(element_bytes),
      forward_(place_room(forward_workspace)),
      backward_(place_room(backward_workspace)) {
  const auto place = [&](std::int64_t of_bytes) {
    return place_tensor(DevicePlace::kWorkspace, backward_workspace, of_bytes);
  };
  if (seat_.attention == ContextAttention::kUlysses) {
    whole_doutput_ = place(rows() * query_columns() * element_bytes);
    whole_dqkv_ = place(rows() * (query_columns() + key_columns()) * element_bytes);
    if (is_sliced()) of_heads_.emplace(of_heads(size), share.sequence, share.slice, element_bytes, bytes);
    return;
  }
  gradients_ = place(block_elements() * std::int64_t{sizeof(float)});
  arriving_ = place(block_elements() * std::int64_t{sizeof(float)});
  if (!is_sliced()) return;
  const std::int64_t kept = size.batch * kept_ * key_columns();
  kept_at_ = bytes.sequences;
  bytes.sequences += aligned_bytes(kept * element_bytes);
  bytes.sequence_gradients = aligned_bytes(kept * std::int64_t{sizeof(float)});
}

DeviceContextAttention::Room DeviceContextAttention::place_room(std::int64_t& total) const {
  const auto place = [&](std::int64_t bytes) { return place_tensor(DevicePlace::kWorkspace, total, bytes); };
  const std::int64_t queries = rows() * query_columns();
  Room room;
  if (seat_.attention == ContextAttention::kUlysses) {
    room.outgoing = place((queries + rows() * key_columns()) * element_bytes_);
    room.incoming = place((queries + rows() * key_columns()) * element_bytes_);
    room.whole_output = place(queries * element_bytes_);
  } else {
    room.outgoing = place(block_elements() * element_bytes_);
    room.incoming = place(block_elements() * element_bytes_);
    room.sums = place(queries * std::int64_t{sizeof(float)});
  }
  return room;
}

void DeviceContextAttention::forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output,
                                     float* log_sum_exp, std::byte* qkv) const {
  if (seat_.attention == ContextAttention::kUlysses) return ulysses_forward(call, size, output, log_sum_exp, qkv);
  ring_forward(call, size, output, log_sum_exp, qkv);
}

void DeviceContextAttention::backward(const DeviceLayerCall& call, const AttentionSize& size,
                                      const AttentionGradients& of) const {
  if (seat_.attention == ContextAttention::kUlysses) return ulysses_backward(call, size, of);
  ring_backward(call, size, of);
}

HeadShares DeviceContextAttention::qkv_shares() const {
  const std::int64_t keys = key_columns() / 2;
  return {.rows = rows(), .parts = {query_columns(), keys, keys}, .members = seat_.ranks};
}

HeadShares DeviceContextAttention::output_shares() const {
  return {.rows = rows(), .parts = {query_columns(), 0, 0}, .members = seat_.ranks};
}

/// Returns the size of attention of whole sequences with this rank's heads.
AttentionSize DeviceContextAttention::of_heads(const AttentionSize& size) const {
  AttentionSize whole = size;
  whole.sequence *= seat_.ranks;
  whole.heads /= seat_.ranks;
  whole.kv_heads /= seat_.ranks;
  whole.dropout.first_head += seat_.rank * whole.heads;
  return whole;
}

/// Turns own [b*S, width] into whole [b*s, width / n], which may lie where `own` does.
void DeviceContextAttention::to_heads(const DeviceLayerCall& call, const Room& room, std::byte* whole,
                                      const std::byte* own, const HeadShares& shares) const {
  std::byte* const outgoing = address_of(call, room.outgoing);
  std::byte* const incoming = size_.batch == 1 ? whole : address_of(call, room.incoming);
  call.kernels.split_heads(outgoing, own, shares);
  call.context.all_to_all(incoming, outgoing, shares.rows * shares.width(), element_bytes_);
  if (size_.batch > 1)  // [n, b, S * width / n]
    call.kernels.transpose_blocks(whole, incoming,
                                  {seat_.ranks, size_.batch, size_.sequence * shares.width() / seat_.ranks});
}

/// Turns whole back into own; the reverse of to_heads().
void DeviceContextAttention::to_tokens(const DeviceLayerCall& call, const Room& room, std::byte* own,
                                       const std::byte* whole, const HeadShares& shares) const {
  std::byte* const incoming = address_of(call, room.incoming);
  if (size_.batch > 1) {
    std::byte* const outgoing = address_of(call, room.outgoing);
    call.kernels.transpose_blocks(outgoing, whole,
                                  {size_.batch, seat_.ranks, size_.sequence * shares.width() / seat_.ranks});
    whole = outgoing;
  }
  call.context.all_to_all(incoming, whole, shares.rows * shares.width(), element_bytes_);
  call.kernels.join_heads(own, incoming, shares);
}

void DeviceContextAttention::ulysses_forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output,
                                             float* log_sum_exp, std::byte* qkv) const {
  std::byte* const whole_output = address_of(call, forward_.whole_output);
  to_heads(call, forward_, qkv, qkv, qkv_shares());
  if (of_heads_)
    of_heads_->forward(call, of_heads(size), whole_output, log_sum_exp, qkv);
  else
    call.kernels.attention_forward(whole_output, log_sum_exp, qkv, of_heads(size), call.numbers);
  to_tokens(call, forward_, output, whole_output, output_shares());
}

void DeviceContextAttention::ulysses_backward(const DeviceLayerCall& call, const AttentionSize& size,
                                              const AttentionGradients& of) const {
  std::byte* const whole_doutput = address_of(call, whole_doutput_);
  std::byte* const whole_output = address_of(call, backward_.whole_output);
  std::byte* const whole_dqkv = address_of(call, whole_dqkv_);
  to_heads(call, backward_, whole_doutput, of.doutput, output_shares());
  to_heads(call, backward_, whole_output, of.output, output_shares());
  if (of_heads_)
    of_heads_->backward(call, of_heads(size),
                        {.dqkv = whole_dqkv,
                         .products = of.products,
                         .doutput = whole_doutput,
                         .qkv = of.qkv,
                         .output = whole_output,
                         .log_sum_exp = of.log_sum_exp});
  else
    call.kernels.attention_backward(whole_dqkv, of.products, whole_doutput, of.qkv, whole_output, of.log_sum_exp,
                                    of_heads(size), call.numbers);
  to_tokens(call, backward_, of.dqkv, whole_dqkv, qkv_shares());
}

/// Calls visit(piece) for the slices so far of the block that has come `step` steps round the ring. The block belongs
/// to the rank that is `step` ranks before this one.
template <class Visit>
void DeviceContextAttention::for_each_piece(const AttentionSize& size, int step, Visit visit) const {
  const int owner = (seat_.rank - step + seat_.ranks) % seat_.ranks;
  for (int slice = 0; slice <= share_.slice_number; ++slice) {
    const TokenRange shared = slice_tokens(share_.sequence, share_.slices, slice);
    visit(Piece{.first_row = shared.first / seat_.ranks,
                .is_last = step + 1 == seat_.ranks && slice == share_.slice_number,
                .block = {.size = size,
                          .queries = runs_of(share_.slice, seat_, seat_.rank),
                          .keys = runs_of(shared, seat_, owner),
                          .is_first = step == 0 && slice == 0,
                          .key_rows = shared.count / seat_.ranks,
                          .key_stride = block_rows()}});
  }
}

/// Keeps the slice's keys and values for later slices.
void DeviceContextAttention::keep(const DeviceLayerCall& call, const std::byte* qkv) const {
  const std::int64_t width = query_columns() + key_columns();
  for (std::int64_t i = 0; i < size_.batch; ++i)
    call.kernels.copy_columns(call.sequences + kept_at_ + (i * kept_ + before_) * key_columns() * element_bytes_,
                              key_columns(), qkv + (i * size_.sequence * width + query_columns()) * element_bytes_,
                              width, {size_.sequence, key_columns()});
}

/// Calls attend(step, keys and values) for each rank's block, this rank's first.
template <class Attend>
void DeviceContextAttention::pass_round(const DeviceLayerCall& call, const Room& room, const std::byte* qkv,
                                        Attend attend) const {
  std::byte* current = address_of(call, room.outgoing);
  std::byte* next = address_of(call, room.incoming);
  const std::int64_t row = key_columns() * element_bytes_;
  if (is_sliced())
    for (std::int64_t i = 0; i < size_.batch; ++i)
      call.kernels.copy(current + i * block_rows() * row, call.sequences + kept_at_ + i * kept_ * row,
                        block_rows() * row);
  else
    call.kernels.copy_columns(current, key_columns(), qkv + query_columns() * element_bytes_,
                              query_columns() + key_columns(), {rows(), key_columns()});
  for (int step = 0; step < seat_.ranks; ++step) {
    const bool is_last = step + 1 == seat_.ranks;
    if (!is_last) call.context.shift(next, current, block_elements());
    attend(step, current);
    std::swap(current, next);
  }
}

void DeviceContextAttention::ring_forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output,
                                          float* log_sum_exp, const std::byte* qkv) const {
  if (is_sliced()) keep(call, qkv);
  pass_round(call, forward_, qkv, [&](int step, const std::byte* keys_values) {
    for_each_piece(size, step, [&](const Piece& piece) {
      call.kernels.attention_block_forward(
          piece.is_last ? output : nullptr, floats_of(call, forward_.sums), log_sum_exp,
          {.qkv = qkv,
           .keys_values = keys_values + piece.first_row * key_columns() * element_bytes_,
           .block = piece.block,
           .numbers = call.numbers});
    });
  });
}

/// The gradients of a block follow it round the ring, and at last reach the rank that owns it.
void DeviceContextAttention::ring_backward(const DeviceLayerCall& call, const AttentionSize& size,
                                           const AttentionGradients& of) const {
  float* gradients = floats_of(call, gradients_);
  float* arriving = floats_of(call, arriving_);
  const auto go_on = [&] {
    call.context.shift_singles(arriving, gradients, block_elements());
    std::swap(gradients, arriving);
  };
  call.kernels.fill_zero(gradients, block_elements());
  pass_round(call, backward_, of.qkv, [&](int step, const std::byte* keys_values) {
    if (step > 0) go_on();
    for_each_piece(size, step, [&](const Piece& piece) {
      call.kernels.attention_block_backward(
          piece.is_last ? of.dqkv : nullptr, gradients + piece.first_row * key_columns(),
          floats_of(call, backward_.sums), of.products, of.doutput, of.output, of.log_sum_exp,
          {.qkv = of.qkv,
           .keys_values = keys_values + piece.first_row * key_columns() * element_bytes_,
           .block = piece.block,
           .numbers = call.numbers});
    });
  });
  go_on();
  const std::int64_t width = query_columns() + key_columns();
  std::byte* const to = of.dqkv + query_columns() * element_bytes_;
  if (!is_sliced()) return call.kernels.narrow_columns(to, width, gradients, {rows(), key_columns()});
  for (std::int64_t i = 0; i < size_.batch; ++i) {
    float* const sums = call.sequence_gradients + i * kept_ * key_columns();
    call.kernels.add_gradients(sums, sums, gradients + i * block_rows() * key_columns(), block_rows() * key_columns());
    call.kernels.narrow_columns(to + i * size_.sequence * width * element_bytes_, width, sums + before_ * key_columns(),
                                {size_.sequence, key_columns()});
  }
}

}}  // namespace plumb::executor
