#pragma once
// Describes what the queries of a rank attend to, for the kernels of a GPU (kernels/cpu/attention/attention.h has shapes
// and layout). Keys and values stand
//
//   * beside the queries, of the same tokens;
//   * for a slice of the sequences (Sun et al. 2024), in a tensor that keeps those of whole sequences;
//   * in a block that goes round a ring of context ranks (Liu et al. 2023). What blocks add to a row is merged by
//     log-sum-exp, in fp32, and the gradients of a block's keys and values are added up in fp32 as it goes round.

#include "kernels/cpu/attention/attention.h"
#include "kernels/simt/dropout.h"

namespace plumb { inline namespace kernels {

/// The places in a sequence of those rows that a rank has: two runs, one behind the other.
struct RunsOfTokens {
  std::int64_t first = 0;   ///< position of row 0
  std::int64_t second = 0;  ///< position of row `split`, behind those of the first run
  std::int64_t split = 0;   ///< rows of the first run

  PLUMB_SIMT std::int64_t position(std::int64_t row) const { return row < split ? first + row : second + row - split; }

  /// Returns the first of `rows` rows at `position` or behind it.
  PLUMB_SIMT std::int64_t row_from(std::int64_t position, std::int64_t rows) const {
    if (position < first + split) return position > first ? position - first : 0;
    if (position <= second) return split;
    return position - second + split < rows ? position - second + split : rows;
  }
};

/// Returns the places of `count` tokens, one behind the other.
PLUMB_SIMT RunsOfTokens one_run(std::int64_t first, std::int64_t count) {
  return {.first = first, .second = first + count, .split = count};
}

struct AttentionBlock {
  AttentionSize size;  ///< sequence: S, the tokens of each sequence that a rank has
  RunsOfTokens queries;
  RunsOfTokens keys;
  /// True for the first block that the queries see, before which there are no sums to add to.
  bool is_first = false;
  std::int64_t key_rows = 0;    ///< K rows of each sequence in the block; 0: S
  std::int64_t key_stride = 0;  ///< rows from a sequence to the next one in the block's tensor; 0: K

  PLUMB_SIMT std::int64_t rows_of_keys() const { return key_rows > 0 ? key_rows : size.sequence; }
  PLUMB_SIMT std::int64_t stride_of_keys() const { return key_stride > 0 ? key_stride : rows_of_keys(); }

  /// Return the rows of the block that the query at a position sees: the first one, and the one behind the last.
  PLUMB_SIMT std::int64_t first_key(std::int64_t query) const {
    return size.window > 0 ? keys.row_from(query - size.window + 1, rows_of_keys()) : 0;
  }
  PLUMB_SIMT std::int64_t keys_end(std::int64_t query) const { return keys.row_from(query + 1, rows_of_keys()); }
  /// Returns the row behind the last one that any query sees.
  PLUMB_SIMT std::int64_t keys_seen() const { return keys_end(queries.position(size.sequence - 1)); }
  /// Return the queries that see the key at a position: the first one, and the one behind the last.
  PLUMB_SIMT std::int64_t first_query(std::int64_t key) const { return queries.row_from(key, size.sequence); }
  PLUMB_SIMT std::int64_t queries_end(std::int64_t key) const {
    return size.window > 0 ? queries.row_from(key + size.window, size.sequence) : size.sequence;
  }
};

/// Returns the block of queries that stand beside their keys and values.
inline AttentionBlock block_of_whole(const AttentionSize& size) {
  const RunsOfTokens all = one_run(0, size.sequence);
  return {.size = size, .queries = all, .keys = all, .is_first = true};
}

/// Returns the block for a slice's queries and the keys and values [b*s, 2k*d] of their sequences.
inline AttentionBlock block_of_slice(const AttentionSlice& slice) {
  const std::int64_t whole = slice.size.sequence;
  AttentionBlock block{
      .size = slice.size,
      .queries = one_run(slice.first, slice.count),
      .keys = one_run(0, whole),
      .is_first = true,
      .key_rows = whole,
  };
  block.size.sequence = slice.count;
  return block;
}

}}  // namespace plumb::kernels

namespace plumb { inline namespace kernels { namespace simt {

/// The tensors of a block. Functions return where rows of heads begin, in elements. With kOneWidth values are as wide as
/// keys, which spares the bodies for tensor cores the registers of a second width.
template <class S, bool kOneWidth = false>
struct AttentionView {
  const S* qkv = nullptr;          ///< [b*S, a*d + k*(d+w)], whose queries are read; w channels of a head's values
  const S* keys_values = nullptr;  ///< [b*K, k*(d+w)]; null: those in qkv
  AttentionBlock block;
  const StepNumbers* numbers = nullptr;  ///< step of dropout; null: its key's step counts
  /// [a] scores that take part in the softmax of each row of a head, from the last block on (sinks.h); null: none
  const float* sinks = nullptr;

  /// Returns the same view for a body of one width or of two.
  template <bool kOfOne>
  PLUMB_SIMT AttentionView<S, kOfOne> with_width() const {
    return {qkv, keys_values, block, numbers, sinks};
  }

  PLUMB_SIMT const AttentionSize& size() const { return block.size; }
  PLUMB_SIMT std::int64_t value_channels() const { return kOneWidth ? size().head_size : size().value_channels(); }
  PLUMB_SIMT float scale() const { return 1.0F / sqrtf(static_cast<float>(size().head_size)); }
  PLUMB_SIMT std::int64_t kv_head(std::int64_t head) const {
    // A GPU divides 32-bit numbers several times as fast.
    return static_cast<unsigned>(head) / (static_cast<unsigned>(size().heads) / static_cast<unsigned>(size().kv_heads));
  }

  /// Return elements of a row of qkv, and of a row of the tensor with the keys.
  PLUMB_SIMT std::int64_t width() const {
    return kOneWidth ? (size().heads + 2 * size().kv_heads) * size().head_size
                     : size().query_width() + size().key_value_width();
  }
  PLUMB_SIMT std::int64_t key_width() const {
    if (keys_values == nullptr) return width();
    return kOneWidth ? 2 * size().kv_heads * size().head_size : size().key_value_width();
  }
  PLUMB_SIMT std::int64_t query(std::int64_t batch, std::int64_t row, std::int64_t head) const {
    return (batch * size().sequence + row) * width() + head * size().head_size;
  }
  /// Returns the element in keys(), and in a tensor of their gradients.
  PLUMB_SIMT std::int64_t key(std::int64_t batch, std::int64_t row, std::int64_t kv) const {
    const std::int64_t heads_before = keys_values == nullptr ? size().heads : 0;
    return (batch * block.stride_of_keys() + row) * key_width() + (heads_before + kv) * size().head_size;
  }
  PLUMB_SIMT const S* keys() const { return keys_values == nullptr ? qkv : keys_values; }
  /// Returns the elements from a key of a kv head to its value.
  PLUMB_SIMT std::int64_t to_value(std::int64_t kv) const {
    if (kOneWidth) return size().kv_heads * size().head_size;
    return (size().kv_heads - kv) * size().head_size + kv * value_channels();
  }
  /// Returns an element of [b*S, a*w].
  PLUMB_SIMT std::int64_t output(std::int64_t batch, std::int64_t row, std::int64_t head) const {
    return ((batch * size().sequence + row) * size().heads + head) * value_channels();
  }
  /// Returns an element of [b*S, a*d], the sums of the queries' gradients.
  PLUMB_SIMT std::int64_t query_sum(std::int64_t batch, std::int64_t row, std::int64_t head) const {
    return ((batch * size().sequence + row) * size().heads + head) * size().head_size;
  }
  /// Returns an element of [b, a, S].
  PLUMB_SIMT std::int64_t statistic(std::int64_t batch, std::int64_t head, std::int64_t row) const {
    return (batch * size().heads + head) * size().sequence + row;
  }
};

/// How a row is merged with what blocks before have added: its new log-sum-exp, and the factors of the earlier sums and
/// of the block's.
struct MergedSoftmax {
  float log_sum_exp, keep, add;
};

/// `before`: the row's log-sum-exp so far, -infinity before the first block. The block's sums are of exp(score -
/// largest), and `total` is the sum of these weights; it is 0 if the row sees no key of the block.
PLUMB_SIMT MergedSoftmax merged_softmax(float before, float largest, float total) {
  if (total == 0) return {before, 1, 0};
  const float added = largest + logf(total);
  if (before == -INFINITY) return {added, 0, 1 / total};
  const float larger = Larger{}(added, before);
  const float whole = larger + logf(expf(added - larger) + expf(before - larger));
  return {whole, expf(before - whole), expf(largest - whole)};
}

/// The places that a row of sums goes to: `to` gets it rounded, and `sums` in fp32; one of them may be null. What `sums`
/// has is added before if `adds` is true.
template <class S>
struct RowEnd {
  S* to;
  float* sums;
  bool adds;
};

template <class A, class B>
PLUMB_SIMT auto smaller(A a, B b) -> decltype(a + b) {
  return a < b ? a : b;
}

}}}  // namespace plumb::kernels::simt
