#include "executor/layers/host/ring_attention.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/attention_piece.h"

namespace plumb { inline namespace executor {
namespace {

/// Returns the runs of tokens that a rank of the group has of slices [first, last], placed as in a buffer of these
/// slices.
std::vector<AttentionRun> runs_of(const CpuContext& context, const ContextSeat& seat, int first, int last) {
  std::vector<AttentionRun> runs;
  std::int64_t rows = 0;
  for (int slice = first; slice <= last; ++slice) {
    const ContextTokens tokens = context_tokens(slice_tokens(context.whole_sequence, context.slices, slice), seat);
    for (const TokenRange& run : {tokens.first, tokens.second}) {
      runs.push_back({.row = rows, .position = run.first, .count = run.count});
      rows += run.count;
    }
  }
  for (AttentionRun& run : runs) run.rows = rows;
  return runs;
}

/// Calls visit(piece) for each pair of a run of this rank's queries and a run of the owner's keys, slices before
/// included. Keys in the future of the queries are left out.
template <class Visit>
void for_each_piece(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat, int owner,
                    Visit visit) {
  ContextSeat owner_seat = seat;
  owner_seat.rank = owner;
  const std::vector<AttentionRun> owned = runs_of(context, owner_seat, 0, context.slice);
  for (const AttentionRun& queries : runs_of(context, seat, context.slice, context.slice))
    for (const AttentionRun& keys : owned)
      if (queries.count > 0 && keys.count > 0 && keys.position < queries.position + queries.count)
        visit(AttentionPiece{size, queries, keys});
}

/// Returns the slice's rows among the rows that this rank keeps of its sequences.
AttentionSlice own_rows_of(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat) {
  AttentionSize kept = size;
  kept.sequence = context.whole_sequence / seat.ranks;
  return {.size = kept, .first = context.own_tokens_before(), .count = size.sequence};
}

/// Returns the rows of a block that goes round: those of the slice and of the slices before.
std::int64_t block_rows(const CpuContext& context, const AttentionSize& size) {
  return context.own_tokens_before() + size.sequence;
}

/// Calls visit(element of the kept rows, element of the block's, count) for each sequence.
template <class Visit>
void for_each_kept_run(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat, Visit visit) {
  const std::int64_t kept = context.whole_sequence / seat.ranks * size.key_value_width();
  const std::int64_t block = block_rows(context, size) * size.key_value_width();
  for (std::int64_t sequence = 0; sequence < size.batch; ++sequence) visit(sequence * kept, sequence * block, block);
}

/// Fills this rank's block of keys and values. Those of the slice are kept for the slices behind.
void fill_block(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat, SequenceSaved* sequence,
                float* block, const float* qkv) {
  const AttentionSlice own = own_rows_of(context, size, seat);
  if (sequence == nullptr) {
    keep_keys_values(block, qkv, own);
    return;
  }
  Tensor& kept = sequence->keys_values;
  if (kept.empty()) kept = context.pool->take(size.batch * own.size.sequence * size.key_value_width());
  keep_keys_values(kept.data(), qkv, own);
  for_each_kept_run(context, size, seat, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::copy_n(kept.data() + from, count, block + to);
  });
}

/// Writes the gradients of this rank's block to its slice's columns of dqkv, together with the gradients from the
/// slices behind. The gradients for the slices before are kept.
void take_block_gradients(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat,
                          SequenceSaved* sequence, float* dqkv, const float* block) {
  const AttentionSlice own = own_rows_of(context, size, seat);
  if (sequence == nullptr) {
    take_keys_values(dqkv, block, own);
    return;
  }
  Tensor& sums = sequence->gradients;
  if (sums.empty()) sums = context.pool->take_zeros(sequence->keys_values.elements());
  for_each_kept_run(context, size, seat, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) sums.data()[to + i] += block[from + i];
  });
  take_keys_values(dqkv, sums.data(), own);
  if (context.slice == 0) sequence->release_attention();
}

/// Calls attend(owner, keys and values) for each rank's block, this rank's first, while the next block travels.
template <class Attend>
void pass_round(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat, SequenceSaved* sequence,
                const float* qkv, Attend attend) {
  const std::int64_t elements = size.batch * block_rows(context, size) * size.key_value_width();
  Tensor current = context.pool->take(elements), next = context.pool->take(elements);
  fill_block(context, size, seat, sequence, current.data(), qkv);
  for (int step = 0; step < seat.ranks; ++step) {
    const bool is_last = step + 1 == seat.ranks;
    CollectiveTicket ticket;
    if (!is_last) ticket = context.groups.context->start(shift(next.values(), std::as_const(current).values()));
    attend((seat.rank - step + seat.ranks) % seat.ranks, current.data());
    if (is_last) return;
    context.groups.context->wait(ticket);
    std::swap(current, next);
  }
}

}  // namespace

std::int64_t ring_attention_scratch_elements(const AttentionSize& size, std::int64_t sequence,
                                             const ContextSeat& seat) {
  const AttentionRun longest{.count = context_tokens({0, sequence}, seat).first.count};
  return attention_piece_scratch_elements({size, longest, longest});
}

void ring_attention_forward(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat,
                            SequenceSaved* sequence, float* output, float* log_sum_exp, const float* qkv) {
  const std::int64_t rows = size.batch * size.sequence;
  std::fill_n(output, rows * size.output_width(), 0.0F);
  std::fill_n(log_sum_exp, rows * size.heads, -std::numeric_limits<float>::infinity());
  pass_round(context, size, seat, sequence, qkv, [&](int owner, const float* keys_values) {
    for_each_piece(context, size, seat, owner, [&](const AttentionPiece& piece) {
      attention_piece_forward(output, log_sum_exp, qkv, keys_values, piece, context.scratch);
    });
  });
}

void ring_attention_backward(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat,
                             SequenceSaved* sequence, float* dqkv, const float* doutput, const float* qkv,
                             const float* output, const float* log_sum_exp) {
  const std::int64_t rows = size.batch * size.sequence;
  std::fill_n(dqkv, rows * (size.query_width() + size.key_value_width()), 0.0F);
  Tensor gradients = context.pool->take_zeros(size.batch * block_rows(context, size) * size.key_value_width());
  Tensor arriving = context.pool->take(gradients.elements());
  pass_round(context, size, seat, sequence, qkv, [&](int owner, const float* keys_values) {
    if (owner != seat.rank) {  // the gradients of this block arrive behind it
      context.groups.context->run(shift(arriving.values(), std::as_const(gradients).values()));
      std::swap(gradients, arriving);
    }
    for_each_piece(context, size, seat, owner, [&](const AttentionPiece& piece) {
      attention_piece_backward(dqkv, gradients.data(), doutput, qkv, keys_values, output, log_sum_exp, piece,
                               context.scratch);
    });
  });
  context.groups.context->run(shift(arriving.values(), std::as_const(gradients).values()));
  take_block_gradients(context, size, seat, sequence, dqkv, arriving.data());
}

}}  // namespace plumb::executor
