#include "kernels/cpu/copy_rows.h"

#include <algorithm>

namespace plumb { inline namespace kernels {

void place_rows(float* placed, const float* rows, const std::int32_t* places, const CopyRowsSize& size) {
  for (std::int64_t t = 0; t < size.tokens; ++t)
    for (std::int64_t j = 0; j < size.picks; ++j) {
      const std::int32_t place = places[t * size.picks + j];
      if (place >= 0) std::copy_n(rows + t * size.columns, size.columns, placed + place * size.columns);
    }
}

void sum_placed_rows(float* rows, const float* placed, const std::int32_t* places, const float* weights,
                     const CopyRowsSize& size) {
  for (std::int64_t t = 0; t < size.tokens; ++t) {
    float* row = rows + t * size.columns;
    std::fill_n(row, size.columns, 0.0F);
    for (std::int64_t j = 0; j < size.picks; ++j) {
      const std::int32_t place = places[t * size.picks + j];
      if (place < 0) continue;
      const float weight = weights == nullptr ? 1.0F : weights[t * size.picks + j];
      const float* from = placed + place * size.columns;
      for (std::int64_t c = 0; c < size.columns; ++c) row[c] += weight * from[c];
    }
  }
}

}}  // namespace plumb::kernels
