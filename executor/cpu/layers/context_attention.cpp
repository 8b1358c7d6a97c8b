#include "executor/cpu/layers/context_attention.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "executor/cpu/layers/local_attention.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/attention_piece.h"

namespace plumb { inline namespace executor {
namespace {

// The ring.

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
  return {.size = kept, .first = own_tokens_before(context), .count = size.sequence};
}

std::int64_t key_columns(const AttentionSize& size) {
  return 2 * size.kv_heads * size.head_size;
}

/// Returns the rows of a block that goes round: those of the slice and of the slices before.
std::int64_t block_rows(const CpuContext& context, const AttentionSize& size) {
  return own_tokens_before(context) + size.sequence;
}

/// Calls visit(element of the kept rows, element of the block's, count) for each sequence.
template <class Visit>
void for_each_kept_run(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat, Visit visit) {
  const std::int64_t kept = context.whole_sequence / seat.ranks * key_columns(size);
  const std::int64_t block = block_rows(context, size) * key_columns(size);
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
  if (kept.empty()) kept = context.pool->take(size.batch * own.size.sequence * key_columns(size));
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
  if (context.slice == 0) *sequence = {};
}

/// Calls attend(owner, keys and values) for each rank's block, this rank's first, while the next block travels.
template <class Attend>
void pass_round(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat, SequenceSaved* sequence,
                const float* qkv, Attend attend) {
  const std::int64_t elements = size.batch * block_rows(context, size) * key_columns(size);
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

// Ulysses (Jacobs et al. 2023).

/// Elements of a row's queries, keys and values, or of its outputs alone, over all heads of this rank.
struct RowParts {
  std::array<std::int64_t, 3> elements{};
  std::int64_t sum() const { return elements[0] + elements[1] + elements[2]; }
};

RowParts qkv_parts(const AttentionSize& size) {
  const std::int64_t keys = size.kv_heads * size.head_size;
  return {{size.heads * size.head_size, keys, keys}};
}

RowParts output_parts(const AttentionSize& size) {
  return {{size.heads * size.head_size, 0, 0}};
}

/// Calls visit(element of the own-token rows, element of the blocks, count) for member `member`'s heads of all own
/// rows; blocks are [member][b*S][1/n of a row].
template <class Visit>
void for_each_part(const RowParts& parts, std::int64_t rows, int members, int member, Visit visit) {
  std::int64_t block = member * rows * (parts.sum() / members);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t column = row * parts.sum();
    for (const std::int64_t part : parts.elements) {
      const std::int64_t share = part / members;
      visit(column + member * share, block, share);
      column += part;
      block += share;
    }
  }
}

/// Calls visit(element of whole sequences [b*s, row], element of the blocks [member][b*S, row], count): member m has
/// tokens [m S, (m+1) S) of each sequence.
template <class Visit>
void for_each_run(const AttentionSize& size, std::int64_t row_elements, int members, Visit visit) {
  const std::int64_t run = size.sequence * row_elements;
  for (int member = 0; member < members; ++member)
    for (std::int64_t sequence = 0; sequence < size.batch; ++sequence)
      visit((sequence * members + member) * run, (member * size.batch + sequence) * run, run);
}

/// Returns this rank's share of the heads of all tokens, [b*s, row/n], from all heads of its own tokens, [b*S, row].
Tensor heads_of_all_tokens(const CpuContext& context, const AttentionSize& size, const RowParts& parts,
                           const float* own) {
  const int n = std::max(1, context.groups.context->members());
  const std::int64_t rows = size.batch * size.sequence, elements = rows * parts.sum();
  Tensor outgoing = context.pool->take(elements), incoming = context.pool->take(elements);
  for (int member = 0; member < n; ++member)
    for_each_part(parts, rows, n, member, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
      std::copy_n(own + from, count, outgoing.data() + to);
    });
  context.groups.context->run(all_to_all(incoming.values(), std::as_const(outgoing).values()));
  for_each_run(size, parts.sum() / n, n, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    std::copy_n(incoming.data() + from, count, outgoing.data() + to);
  });
  return outgoing;
}

/// Exchanges in the reverse direction, into `own`.
void own_tokens_of_heads(const CpuContext& context, const AttentionSize& size, const RowParts& parts, float* own,
                         const Tensor& all) {
  const int n = std::max(1, context.groups.context->members());
  const std::int64_t rows = size.batch * size.sequence;
  Tensor outgoing = context.pool->take(all.elements()), incoming = context.pool->take(all.elements());
  for_each_run(size, parts.sum() / n, n, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::copy_n(all.data() + from, count, outgoing.data() + to);
  });
  context.groups.context->run(all_to_all(incoming.values(), std::as_const(outgoing).values()));
  for (int member = 0; member < n; ++member)
    for_each_part(parts, rows, n, member, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
      std::copy_n(incoming.data() + from, count, own + to);
    });
}

AttentionSize size_of_heads(const AttentionSize& size, int members, int member) {
  AttentionSize whole = size;
  whole.dropout.first_head += member * (size.heads / members);
  whole.sequence *= members;
  whole.heads /= members;
  whole.kv_heads /= members;
  return whole;
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
  std::fill_n(output, rows * size.heads * size.head_size, 0.0F);
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
  std::fill_n(dqkv, rows * (size.heads + 2 * size.kv_heads) * size.head_size, 0.0F);
  Tensor gradients = context.pool->take_zeros(size.batch * block_rows(context, size) * key_columns(size));
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

Tensor ulysses_attention_forward(const CpuContext& context, const AttentionSize& size, SequenceSaved* sequence,
                                 float* output, float* log_sum_exp, const float* qkv) {
  const AttentionSize whole = size_of_heads(size, context.groups.context->members(), context.groups.context->member());
  Tensor exchanged = heads_of_all_tokens(context, size, qkv_parts(size), qkv);
  Tensor whole_output = context.pool->take(whole.batch * whole.sequence * whole.heads * whole.head_size);
  local_attention_forward(context, whole, sequence, whole_output.data(), log_sum_exp, exchanged.data());
  own_tokens_of_heads(context, size, output_parts(size), output, whole_output);
  return exchanged;
}

void ulysses_attention_backward(const CpuContext& context, const AttentionSize& size, SequenceSaved* sequence,
                                float* dqkv, const float* doutput, const float* exchanged_qkv, const float* output,
                                const float* log_sum_exp) {
  const AttentionSize whole = size_of_heads(size, context.groups.context->members(), context.groups.context->member());
  const Tensor whole_doutput = heads_of_all_tokens(context, size, output_parts(size), doutput);
  const Tensor whole_output = heads_of_all_tokens(context, size, output_parts(size), output);
  Tensor whole_dqkv =
      context.pool->take(whole.batch * whole.sequence * (whole.heads + 2 * whole.kv_heads) * whole.head_size);
  local_attention_backward(context, whole, sequence, whole_dqkv.data(), whole_doutput.data(), exchanged_qkv,
                           whole_output.data(), log_sum_exp);
  own_tokens_of_heads(context, size, qkv_parts(size), dqkv, whole_dqkv);
}

}}  // namespace plumb::executor
