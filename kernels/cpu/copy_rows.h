#pragma once
// Copies of tokens' rows to the places of their picks, and back. A negative place stands for a pick that was dropped.
// KernelKind kCopyRows.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct CopyRowsSize {
  std::int64_t tokens = 0;   ///< T
  std::int64_t picks = 0;    ///< k places a token
  std::int64_t columns = 0;  ///< C
};

/// placed[places[t, j]] = rows[t]; rows of `placed` that no place names stay. placed: [places, C], rows: [T, C],
/// places: [T, k]
void place_rows(float* placed, const float* rows, const std::int32_t* places, const CopyRowsSize& size);

/// rows[t] = the sum over j of placed[places[t, j]], in ascending j; 0 for a token without a place. Each term is
/// multiplied by weights[t, j] if `weights` is not null. weights: [T, k]
void sum_placed_rows(float* rows, const float* placed, const std::int32_t* places, const float* weights,
                     const CopyRowsSize& size);

}}  // namespace plumb::kernels
