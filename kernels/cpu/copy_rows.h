#pragma once
// Rows of tokens to the places of their picks, and back. A place below 0 is none: the pick was dropped. KernelKind
// kCopyRows.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct CopyRowsSize {
  std::int64_t tokens = 0;   ///< T
  std::int64_t picks = 0;    ///< k places a token
  std::int64_t columns = 0;  ///< C
};

/// placed[places[t, j]] = rows[t]; what no place names stays. placed: [places, C], rows: [T, C], places: [T, k]
void place_rows(float* placed, const float* rows, const std::int32_t* places, const CopyRowsSize& size);

/// rows[t] = the sum over j of placed[places[t, j]], times weights[t, j] where these are not null, in ascending j; 0
/// for a token without a place. weights: [T, k]
void sum_placed_rows(float* rows, const float* placed, const std::int32_t* places, const float* weights,
                     const CopyRowsSize& size);

}}  // namespace plumb::kernels
