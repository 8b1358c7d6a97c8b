#pragma once
// The biases of experts' linear layers on a GPU (kernels/cpu/products/bias.h has that of one expert). The number of each
// expert's rows is read on the device. Symbols: R rows, C columns, E experts.

#include "kernels/simt/column_sum.h"
#include "kernels/simt/experts/expert_products.h"

namespace plumb { inline namespace kernels { namespace simt {

/// y[r,c] += biases[e,c] for the expert e of row r. A block takes a row. y: [R, C]; biases: [E, C]
template <class S>
struct ExpertBiasForward {
  S* y;
  const S* biases;
  ExpertRows rows;
  std::int64_t columns;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t end = rows.end(rows.experts - 1);
    for (std::int64_t row = thread.block(); row < end; row += thread.blocks()) {
      const S* bias = biases + rows.expert_of(row) * columns;
      S* own = y + row * columns;
      for (std::int64_t c = thread.lane(); c < columns; c += thread.lanes())
        store(own[c], widened(own[c]) + widened(bias[c]));
    }
  }
};

/// dbiases[e,c] += the sum over the rows r of expert e of dy[r,c]. dbiases: [E, C]; dy: [R, C]
template <class S>
struct ExpertBiasBackward {
  float* dbiases;
  const S* dy;
  ExpertRows rows;
  std::int64_t columns;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_range_sum<1>(
        thread, columns, rows.experts,
        [&](std::int64_t expert) {
          return RowRange{rows.begin(expert), rows.end(expert)};
        },
        [&](float(&sum)[1], std::int64_t row, std::int64_t c) { sum[0] += widened(dy[row * columns + c]); },
        [&](std::int64_t expert, std::int64_t c, const float(&sum)[1]) { dbiases[expert * columns + c] += sum[0]; });
  }
};

}}}  // namespace plumb::kernels::simt
