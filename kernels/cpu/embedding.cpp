#include "kernels/cpu/embedding.h"

#include <algorithm>

namespace plumb { inline namespace kernels {

void embedding_forward(float* y, const std::int32_t* tokens, const float* table, const float* positions,
                       const EmbeddingSize& size) {
  const std::int64_t columns = size.columns;
  for (std::int64_t token = 0; token < size.tokens; ++token, y += columns) {
    if (tokens[token] < 0) {
      std::fill(y, y + columns, 0.0F);
    } else {
      const float* row = table + tokens[token] * columns;
      std::copy(row, row + columns, y);
    }
    if (positions == nullptr) continue;
    const float* position = positions + (token % size.sequence) * columns;
    for (std::int64_t c = 0; c < columns; ++c) y[c] += position[c];
  }
}

void embedding_backward(float* dtable, float* dpositions, const float* dy, const std::int32_t* tokens,
                        const EmbeddingSize& size) {
  const std::int64_t columns = size.columns;
  for (std::int64_t token = 0; token < size.tokens; ++token, dy += columns) {
    if (tokens[token] >= 0) {
      float* row = dtable + tokens[token] * columns;
      for (std::int64_t c = 0; c < columns; ++c) row[c] += dy[c];
    }
    if (dpositions == nullptr) continue;
    float* position = dpositions + (token % size.sequence) * columns;
    for (std::int64_t c = 0; c < columns; ++c) position[c] += dy[c];
  }
}

}}  // namespace plumb::kernels
