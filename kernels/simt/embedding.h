#pragma once
// Token and position embedding on a GPU (kernels/cpu/embedding.h); the backward adds in ascending order of tokens,
// without atomics.

#include "kernels/cpu/embedding.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"
#include "kernels/simt/wide.h"

namespace plumb { inline namespace kernels { namespace simt {

/// y[t] = table[token[t]] + positions[t mod s]. Null positions and the row of a negative token count as zeros. One
/// block computes a token's row. y: [T, h]; tokens: [T]; table: [V, h]; positions: [>= s, h]
template <class S>
struct EmbeddingForward {
  S* y;
  const std::int32_t* tokens;
  const S* table;
  const S* positions;
  EmbeddingSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const bool wide = is_wide<S>(size.columns, y, table, positions);
    for (std::int64_t t = thread.block(); t < size.tokens; t += thread.blocks()) {
      const std::int64_t token = tokens[t];
      const S* row = table + (token < 0 ? 0 : token * size.columns);
      const S* position = positions + (positions == nullptr ? 0 : t % size.sequence * size.columns);
      for_each_of_row<S>(thread, size.columns, wide, [&]<int N>(std::int64_t c) {
        float values[N] = {}, added[N] = {};
        if (token >= 0) load_all(values, row + c);
        if (positions != nullptr) load_all(added, position + c);
        for (int j = 0; j < N; ++j) values[j] += added[j];
        store_all(y + t * size.columns + c, values);
      });
    }
  }
};

/// Sorts the places of tokens by their token, equal ones by their place. One block finds a token's place in the order,
/// by counting the tokens that come before it. order: [T] places; occurrences: [T], for each place in the order the
/// number of equal tokens from there on if it is the first of them, otherwise 0, and 0 for a negative token
struct TokenOrder {
  std::int32_t* order;
  std::int32_t* occurrences;
  const std::int32_t* tokens;
  std::int64_t count;  ///< T, below 2^24, up to which fp32 counts

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t t = thread.block(); t < count; t += thread.blocks()) {
      const std::int32_t token = tokens[t];
      float smaller = 0, equal_before = 0, equal = 0;
      for (std::int64_t other = thread.lane(); other < count; other += thread.lanes()) {
        const std::int32_t read = tokens[other];
        smaller += read < token ? 1.0F : 0.0F;
        equal += read == token ? 1.0F : 0.0F;
        equal_before += read == token && other < t ? 1.0F : 0.0F;
      }
      smaller = combine_over_block(thread, smaller, Add{});
      equal = combine_over_block(thread, equal, Add{});
      equal_before = combine_over_block(thread, equal_before, Add{});
      if (thread.lane() != 0) continue;
      const auto place = static_cast<std::int64_t>(smaller + equal_before);
      order[place] = static_cast<std::int32_t>(t);
      occurrences[place] = equal_before > 0 || token < 0 ? 0 : static_cast<std::int32_t>(equal);
    }
  }
};

/// dtable[token[t]] += dy[t], in ascending order of t. A block takes a token's first occurrence and as many columns as
/// it has lanes, and adds the rows of all occurrences. dy: [T, h]; tokens: [T]; order, occurrences: those of TokenOrder;
/// dtable: [V, h], fp32
template <class S>
struct EmbeddingBackward {
  float* dtable;
  const S* dy;
  const std::int32_t* tokens;
  const std::int32_t* order;
  const std::int32_t* occurrences;
  EmbeddingSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t stretches = (size.columns + thread.lanes() - 1) / thread.lanes();
    for (std::int64_t item = thread.block(); item < size.tokens * stretches; item += thread.blocks()) {
      const std::int64_t first = item / stretches, c = item % stretches * thread.lanes() + thread.lane();
      const std::int32_t count = occurrences[first];
      if (count == 0 || c >= size.columns) continue;
      const std::int32_t* places = order + first;
      const auto element = [&](std::int32_t i) { return widened(dy[std::int64_t{places[i]} * size.columns + c]); };
      float& to = dtable[std::int64_t{tokens[places[0]]} * size.columns + c];
      float sum = to;
      // A frequent token has thousands of rows, so that several are on their way at a time.
      constexpr std::int32_t kAtOnce = 8;
      std::int32_t i = 0;
      for (; i + kAtOnce <= count; i += kAtOnce) {
        float values[kAtOnce];
        for (std::int32_t j = 0; j < kAtOnce; ++j) values[j] = element(i + j);
        for (const float value : values) sum += value;
      }
      for (; i < count; ++i) sum += element(i);
      to = sum;
    }
  }
};

/// dpositions[p] += dy[p], dy[p + s], ... One block adds up a position. dpositions: [>= s, h], fp32
template <class S>
struct PositionBackward {
  float* dpositions;
  const S* dy;
  EmbeddingSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t position = thread.block(); position < size.sequence; position += thread.blocks()) {
      for (std::int64_t c = thread.lane(); c < size.columns; c += thread.lanes()) {
        float sum = dpositions[position * size.columns + c];
        for (std::int64_t t = position; t < size.tokens; t += size.sequence) sum += widened(dy[t * size.columns + c]);
        dpositions[position * size.columns + c] = sum;
      }
    }
  }
};

}}}  // namespace plumb::kernels::simt
