#pragma once
// RMSNorm and LayerNorm on a GPU (kernels/cpu/norm.h has the formulas); the forward includes the residual addition
// before it. S is the format in which activations are stored; gains, biases and statistics are fp32.

#include "kernels/cpu/norm.h"
#include "kernels/simt/column_sum.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// sum = x + residual (if it is not null), y = norm(sum). A null `mean` makes it RMSNorm, without a bias. One block
/// computes a row. x, residual, sum, y: [R, C]; gain, bias: [C]; mean, rstd: [R]
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

/// dx = residual_gradient + the norm's gradient. One block computes a row. dx may be dy or residual_gradient. dx, dy,
/// residual_gradient, x: [R, C]; gain: [C]; mean, rstd: [R]
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

/// dgain += column sums of dy * normalised x, dbias += column sums of dy (column_sum.h). dgain, dbias: [C]
template <class S>
struct NormParameterGradient {
  float* dgain;
  float* dbias;  ///< null: no bias
  const S* dy;
  const S* x;
  const float* mean;  ///< null: RMSNorm
  const float* rstd;
  NormSize size;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    add_column_sums(thread, dgain, size.rows, size.columns, [&](std::int64_t row, std::int64_t c) {
      const float center = mean == nullptr ? 0.0F : mean[row];
      const std::int64_t at = row * size.columns + c;
      return widened(dy[at]) * ((widened(x[at]) - center) * rstd[row]);
    });
    add_column_sums(thread, dbias, size.rows, size.columns,
                    [&](std::int64_t row, std::int64_t c) { return widened(dy[row * size.columns + c]); });
  }
};

}}}  // namespace plumb::kernels::simt
