#pragma once
// Token and position embedding. KernelKind kEmbeddingForward and kEmbeddingBackward.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct EmbeddingSize {
  std::int64_t tokens = 0;    ///< T, sequences of `sequence` tokens one after the other
  std::int64_t sequence = 0;  ///< s
  std::int64_t columns = 0;   ///< h
};

/// y[t] = table[token[t]] + positions[t mod s]. A null `positions` counts as zeros, and so does the row of a negative
/// token, which belongs to another rank.
/// y: [T, h]; tokens: [T]; table: [V, h]; positions: [>= s, h]
void embedding_forward(float* y, const std::int32_t* tokens, const float* table, const float* positions,
                       const EmbeddingSize& size);

/// dtable[token[t]] += dy[t] and dpositions[t mod s] += dy[t], in ascending t, so that the result is the same every
/// time. A null `dpositions` is skipped, and so is the row of a negative token. dy: [T, h]; tokens: [T]; dtable: [V,
/// h]; dpositions: [>= s, h]
void embedding_backward(float* dtable, float* dpositions, const float* dy, const std::int32_t* tokens,
                        const EmbeddingSize& size);

}}  // namespace plumb::kernels
