#pragma once
// The bias of a linear layer on a GPU, where no product adds it (kernels/cpu/products/bias.h).

#include "kernels/simt/column_sum.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// y[r,c] += bias[c]. y: [rows, columns]; bias: [columns], fp32
template <class S>
struct BiasForward {
  S* y;
  const float* bias;
  std::int64_t rows;
  std::int64_t columns;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, rows * columns, [&](std::int64_t i) { store(y[i], widened(y[i]) + bias[i % columns]); });
  }
};

/// parts[g,c] = sum over the rows r of group g of dy[r,c] (column_sum.h). dy: [rows, columns]; parts: [groups, columns]
template <class S>
struct BiasParts {
  float* parts;
  const S* dy;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t groups;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_group_sum<1>(
        thread, rows, columns, groups,
        [&](float(&sum)[1], std::int64_t row, std::int64_t c) { sum[0] += widened(dy[row * columns + c]); },
        [&](std::int64_t group, std::int64_t c, const float(&sum)[1]) { parts[group * columns + c] = sum[0]; });
  }
};

}}}  // namespace plumb::kernels::simt
