#pragma once
// The bias of a linear layer on a GPU, where no product adds it (kernels/cpu/bias.h).

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb::simt {

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

/// dbias[c] += sum over r of dy[r,c]. A block takes 32 columns; its lanes are groups of rows over them, added up in the
/// order of the groups. dy: [rows, columns]; dbias: [columns], fp32
template <class S>
struct BiasBackward {
  static constexpr int kColumns = 32;

  float* dbias;
  const S* dy;
  std::int64_t rows;
  std::int64_t columns;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t stretches = (columns + kColumns - 1) / kColumns;
    const int groups = thread.lanes() / kColumns;
    float* shared = thread.shared();
    for (std::int64_t stretch = thread.block(); stretch < stretches; stretch += thread.blocks()) {
      const std::int64_t c = stretch * kColumns + thread.lane() % kColumns;
      float own = 0;
      for (std::int64_t row = thread.lane() / kColumns; row < rows && c < columns; row += groups)
        own += widened(dy[row * columns + c]);
      shared[thread.lane()] = own;
      thread.sync();
      if (thread.lane() < kColumns && c < columns) {
        float total = 0;
        for (int group = 0; group < groups; ++group) total += shared[group * kColumns + thread.lane()];
        dbias[c] += total;
      }
      thread.sync();
    }
  }
};

}  // namespace plumb::simt
