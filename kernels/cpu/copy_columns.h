#pragma once
// Copies of columns between rows of different widths (kernels/simt/copy_columns.h on a GPU).

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/norm.h"

namespace plumb { inline namespace kernels {

/// Copies columns of rows of `from_width` channels to rows of `to_width`. Both pointers are at the first column in the
/// first row; the other columns stay. size: the rows and the columns that are copied
inline void copy_columns(float* to, std::int64_t to_width, const float* from, std::int64_t from_width,
                         const NormSize& size) {
  for (std::int64_t row = 0; row < size.rows; ++row)
    std::copy_n(from + row * from_width, size.columns, to + row * to_width);
}

}}  // namespace plumb::kernels
