#pragma once
// The addition behind a block's branch on a GPU, with the bias of its last linear layer.

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

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
    for_each_element(thread, rows * columns, [&](std::int64_t i) {
      const float branch = widened(y[i]) + (bias == nullptr ? 0.0F : bias[i % columns]);
      store(z[i], widened(x[i]) + branch);
    });
  }
};

}}}  // namespace plumb::kernels::simt
