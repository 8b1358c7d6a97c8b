#include "kernels/cpu/embedding.h"

#include <algorithm>

namespace plumb {

void embedding_forward(float* y, const std::int32_t* tokens, const float* table, const float* positions,
                       const EmbeddingSize& size) {
  const std::int64_t columns = size.columns;
  for (std::int64_t token = 0; token < size.tokens; ++token, y += columns) {
    const float* row = table + tokens[token] * columns;
    if (positions == nullptr) {
      std::copy(row, row + columns, y);
    } else {
      const float* position = positions + (token % size.sequence) * columns;
      for (std::int64_t c = 0; c < columns; ++c) y[c] = row[c] + position[c];
    }
  }
}

void embedding_backward(float* dtable, float* dpositions, const float* dy, const std::int32_t* tokens,
                        const EmbeddingSize& size) {
  const std::int64_t columns = size.columns;
  for (std::int64_t token = 0; token < size.tokens; ++token, dy += columns) {
    float* row = dtable + tokens[token] * columns;
    for (std::int64_t c = 0; c < columns; ++c) row[c] += dy[c];
    if (dpositions == nullptr) continue;
    float* position = dpositions + (token % size.sequence) * columns;
    for (std::int64_t c = 0; c < columns; ++c) position[c] += dy[c];
  }
}

}  // namespace plumb
