#pragma once
// Token and position embedding on a GPU (kernels/cpu/embedding.h); the backward adds in ascending order of tokens,
// without atomics.

#include "kernels/cpu/embedding.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

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
    for (std::int64_t t = thread.block(); t < size.tokens; t += thread.blocks()) {
      const std::int64_t token = tokens[t];
      for (std::int64_t c = thread.lane(); c < size.columns; c += thread.lanes()) {
        float value = token < 0 ? 0.0F : widened(table[token * size.columns + c]);
        if (positions != nullptr) value += widened(positions[t % size.sequence * size.columns + c]);
        store(y[t * size.columns + c], value);
      }
    }
  }
};

/// dtable[token[t]] += dy[t]. The block of a token's first occurrence adds the rows of all occurrences, for which it
/// reads the T tokens once. The blocks of the other occurrences stop where they find an earlier one. dy: [T, h];
/// tokens: [T]; dtable: [V, h], fp32
template <class S>
struct EmbeddingBackward {
  float* dtable;
  const S* dy;
  const std::int32_t* tokens;
  EmbeddingSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t t = thread.block(); t < size.tokens; t += thread.blocks()) {
      const std::int32_t token = tokens[t];
      if (token < 0 || occurs_before(thread, t, token)) continue;  // all lanes decide the same
      for (std::int64_t c = thread.lane(); c < size.columns; c += thread.lanes()) {
        float sum = dtable[token * size.columns + c];
        for (std::int64_t other = t; other < size.tokens; ++other) {
          if (tokens[other] == token) sum += widened(dy[other * size.columns + c]);
        }
        dtable[token * size.columns + c] = sum;
      }
    }
  }

 private:
  template <class Thread>
  PLUMB_SIMT bool occurs_before(const Thread& thread, std::int64_t t, std::int32_t token) const {
    float found = 0;
    for (std::int64_t other = thread.lane(); other < t; other += thread.lanes())
      found = tokens[other] == token ? 1.0F : found;
    return combine_over_block(thread, found, Larger{}) > 0;
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
