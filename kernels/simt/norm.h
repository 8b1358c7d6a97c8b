#pragma once
// RMSNorm and LayerNorm on a GPU (kernels/cpu/norm.h has the formulas), forward with the residual addition before it.
// S is how activations are stored; gains, biases and statistics are fp32.

#include "kernels/cpu/norm.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb::simt {

/// sum = x + residual (where there is one), y = norm(sum). A null `mean` makes it RMSNorm, without a bias. A row is a
/// block's. x, residual, sum, y: [R, C]; gain, bias: [C]; mean, rstd: [R]
template <class S>
struct NormForward {
  S* y;
  S* sum;
  float* mean;
  float* rstd;
  const S* x;
  const S* residual;  ///< null: y is the norm of x, and `sum` is not written
  const float* gain;
  const float* bias;
  NormSize size;
  float epsilon;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const auto columns = static_cast<float>(size.columns);
    for (std::int64_t row = thread.block(); row < size.rows; row += thread.blocks()) {
      const std::int64_t at = row * size.columns;
      if (residual != nullptr) {
        for (std::int64_t c = thread.lane(); c < size.columns; c += thread.lanes())
          store(sum[at + c], widened(x[at + c]) + widened(residual[at + c]));
      }
      const S* input = (residual != nullptr ? sum : x) + at;  // a lane reads the columns that it has written
      float center = 0;
      if (mean != nullptr)
        center = sum_over_row(thread, size.columns, [&](std::int64_t c) { return widened(input[c]); }) / columns;
      const float squares = sum_over_row(thread, size.columns, [&](std::int64_t c) {
        const float difference = widened(input[c]) - center;
        return difference * difference;
      });
      const float scale = 1.0F / sqrtf(squares / columns + epsilon);
      if (thread.lane() == 0) {
        rstd[row] = scale;
        if (mean != nullptr) mean[row] = center;
      }
      for (std::int64_t c = thread.lane(); c < size.columns; c += thread.lanes())
        store(y[at + c], (widened(input[c]) - center) * scale * gain[c] + (bias == nullptr ? 0.0F : bias[c]));
    }
  }
};

/// dx = residual_gradient + the norm's gradient; a row is a block's. dx may be dy or residual_gradient.
/// dx, dy, residual_gradient, x: [R, C]; gain: [C]; mean, rstd: [R]
template <class S>
struct NormBackward {
  S* dx;
  const S* dy;
  const S* residual_gradient;  ///< null counts as zeros
  const S* x;
  const float* mean;  ///< null: RMSNorm
  const float* rstd;
  const float* gain;
  NormSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const auto columns = static_cast<float>(size.columns);
    for (std::int64_t row = thread.block(); row < size.rows; row += thread.blocks()) {
      const std::int64_t at = row * size.columns;
      const float scale = rstd[row];
      const float center = mean == nullptr ? 0.0F : mean[row];
      float average = 0;
      if (mean != nullptr) {
        average =
            sum_over_row(thread, size.columns, [&](std::int64_t c) { return widened(dy[at + c]) * gain[c]; }) / columns;
      }
      const float projection =
          sum_over_row(thread, size.columns,
                       [&](std::int64_t c) { return widened(dy[at + c]) * gain[c] * (widened(x[at + c]) - center); }) *
          scale * scale / columns;
      for (std::int64_t c = thread.lane(); c < size.columns; c += thread.lanes()) {
        const float past = residual_gradient == nullptr ? 0.0F : widened(residual_gradient[at + c]);
        const float own = widened(dy[at + c]) * gain[c] - average - (widened(x[at + c]) - center) * projection;
        store(dx[at + c], past + scale * own);
      }
    }
  }
};

/// dgain += column sums of dy * normalised x, dbias += those of dy. A block takes 32 columns; its lanes are groups of
/// rows over them, added up in the order of the groups. dgain, dbias: [C]
template <class S>
struct NormParameterGradient {
  static constexpr int kColumns = 32;

  float* dgain;
  float* dbias;  ///< null: none
  const S* dy;
  const S* x;
  const float* mean;  ///< null: RMSNorm
  const float* rstd;
  NormSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t stretches = (size.columns + kColumns - 1) / kColumns;
    const int groups = thread.lanes() / kColumns;
    const int group = thread.lane() / kColumns;
    for (std::int64_t stretch = thread.block(); stretch < stretches; stretch += thread.blocks()) {
      const std::int64_t c = stretch * kColumns + thread.lane() % kColumns;
      float to_gain = 0;
      float to_bias = 0;
      for (std::int64_t row = group; row < size.rows && c < size.columns; row += groups) {
        const float gradient = widened(dy[row * size.columns + c]);
        const float center = mean == nullptr ? 0.0F : mean[row];
        to_gain += gradient * ((widened(x[row * size.columns + c]) - center) * rstd[row]);
        to_bias += gradient;
      }
      add_groups(thread, groups, c, to_gain, dgain);
      if (dbias != nullptr) add_groups(thread, groups, c, to_bias, dbias);
    }
  }

 private:
  template <class Thread>
  PLUMB_SIMT void add_groups(const Thread& thread, int groups, std::int64_t c, float value, float* to) const {
    float* shared = thread.shared();
    shared[thread.lane()] = value;
    thread.sync();
    if (thread.lane() < kColumns && c < size.columns) {
      float total = 0;
      for (int group = 0; group < groups; ++group) total += shared[group * kColumns + thread.lane()];
      to[c] += total;
    }
    thread.sync();
  }
};

}  // namespace plumb::simt
