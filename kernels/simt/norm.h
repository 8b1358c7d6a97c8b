#pragma once
// RMSNorm and LayerNorm on a GPU (kernels/cpu/norm.h has the formulas); the forward includes the residual addition
// before it. S is the format in which activations are stored; gains, biases and statistics are fp32.

#include "kernels/cpu/norm.h"
#include "kernels/simt/column_sum.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"
#include "kernels/simt/wide.h"

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
    const bool wide = is_wide<S>(size.columns, y, sum, x, residual, gain, bias);
    for (std::int64_t row = thread.block(); row < size.rows; row += thread.blocks()) {
      const std::int64_t at = row * size.columns;
      const S* input = (residual != nullptr ? sum : x) + at;  // a lane reads the columns that it has written
      float total = 0;
      for_each_of_row<S>(thread, size.columns, wide, [&]<int N>(std::int64_t c) {
        float values[N];
        load_all(values, x + at + c);
        if (residual != nullptr) {
          float added[N];
          load_all(added, residual + at + c);
          for (int j = 0; j < N; ++j) values[j] += added[j];
          store_all(sum + at + c, values);
          load_all(values, input + c);  // as it is stored
        }
        for (const float value : values) total += value;
      });
      const float center = mean == nullptr ? 0.0F : combine_over_block(thread, total, Add{}) / columns;
      float own = 0;
      for_each_of_row<S>(thread, size.columns, wide, [&]<int N>(std::int64_t c) {
        float values[N];
        load_all(values, input + c);
        for (const float value : values) own += (value - center) * (value - center);
      });
      const float squares = combine_over_block(thread, own, Add{});
      const float scale = 1.0F / sqrtf(squares / columns + epsilon);
      if (thread.lane() == 0) {
        rstd[row] = scale;
        if (mean != nullptr) mean[row] = center;
      }
      for_each_of_row<S>(thread, size.columns, wide, [&]<int N>(std::int64_t c) {
        float values[N], gains[N], biases[N] = {};
        load_all(values, input + c);
        load_all(gains, gain + c);
        if (bias != nullptr) load_all(biases, bias + c);
        for (int j = 0; j < N; ++j) values[j] = (values[j] - center) * scale * gains[j] + biases[j];
        store_all(y + at + c, values);
      });
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
    const bool wide = is_wide<S>(size.columns, dx, dy, residual_gradient, x, gain);
    for (std::int64_t row = thread.block(); row < size.rows; row += thread.blocks()) {
      const std::int64_t at = row * size.columns;
      const float scale = rstd[row];
      const float center = mean == nullptr ? 0.0F : mean[row];
      float total = 0, along = 0;  // of the gradient before the gain, and of its product with the input
      for_each_of_row<S>(thread, size.columns, wide, [&]<int N>(std::int64_t c) {
        float gradients[N], inputs[N], gains[N];
        load_all(gradients, dy + at + c);
        load_all(inputs, x + at + c);
        load_all(gains, gain + c);
        for (int j = 0; j < N; ++j) {
          const float gradient = gradients[j] * gains[j];
          total += gradient;
          along += gradient * (inputs[j] - center);
        }
      });
      const float average = mean == nullptr ? 0.0F : combine_over_block(thread, total, Add{}) / columns;
      const float projection = combine_over_block(thread, along, Add{}) * scale * scale / columns;
      for_each_of_row<S>(thread, size.columns, wide, [&]<int N>(std::int64_t c) {
        float gradients[N], inputs[N], gains[N], past[N] = {};
        load_all(gradients, dy + at + c);
        load_all(inputs, x + at + c);
        load_all(gains, gain + c);
        if (residual_gradient != nullptr) load_all(past, residual_gradient + at + c);
        for (int j = 0; j < N; ++j)
          gradients[j] = past[j] + scale * (gradients[j] * gains[j] - average - (inputs[j] - center) * projection);
        store_all(dx + at + c, gradients);
      });
    }
  }
};

/// Parts of the column sums of dy * normalised x, and behind them of those of dy (column_sum.h): each group of rows has
/// its own, so that many blocks can work. parts: [groups, 2C], or [groups, C] for RMSNorm
template <class S>
struct NormParameterParts {
  float* parts;
  const S* dy;
  const S* x;
  const float* mean;  ///< null: RMSNorm, without a bias
  const float* rstd;
  NormSize size;
  std::int64_t groups;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t width = mean == nullptr ? size.columns : 2 * size.columns;
    for_each_group_sum<2>(
        thread, size.rows, size.columns, groups,
        [&](float(&sums)[2], std::int64_t row, std::int64_t c) {
          const std::int64_t at = row * size.columns + c;
          const float gradient = widened(dy[at]), center = mean == nullptr ? 0.0F : mean[row];
          sums[0] += gradient * ((widened(x[at]) - center) * rstd[row]);
          sums[1] += gradient;
        },
        [&](std::int64_t group, std::int64_t c, const float(&sums)[2]) {
          parts[group * width + c] = sums[0];
          if (mean != nullptr) parts[group * width + size.columns + c] = sums[1];
        });
  }
};

}}}  // namespace plumb::kernels::simt
