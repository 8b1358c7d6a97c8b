#pragma once
// The addition behind a block's branch on a GPU, with the bias of its last linear layer.

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"
#include "kernels/simt/wide.h"

namespace plumb { inline namespace kernels { namespace simt {

/// z = x + (y + bias). z may be x or y. x, y, z: [rows, columns]; bias: [columns], fp32, null counts as zeros.
template <class S>
struct ResidualAdd {
  S* z;
  const S* x;
  const S* y;
  const float* bias;
  std::int64_t rows;
  std::int64_t columns;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    // Without a bias it is one long row.
    const std::int64_t height = bias == nullptr ? 1 : rows, width = bias == nullptr ? rows * columns : columns;
    for_each_stretch<S>(thread, height, width, is_wide<S>(width, x, y, z),
                        [&]<int N>(std::int64_t row, std::int64_t c) {
                          const std::int64_t at = row * width + c;
                          float sums[N], branch[N];
                          load_all(sums, x + at);
                          load_all(branch, y + at);
                          for (int j = 0; j < N; ++j) sums[j] += branch[j] + (bias == nullptr ? 0.0F : bias[c + j]);
                          store_all(z + at, sums);
                        });
  }
};

}}}  // namespace plumb::kernels::simt
