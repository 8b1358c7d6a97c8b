#include "kernels/cpu/norm.h"

#include <cmath>

#include "kernels/cpu/reduce.h"

namespace plumb { inline namespace kernels {

void rms_norm_forward(float* y, float* rstd, const float* x, const float* gain, const NormSize& size, float epsilon) {
  const std::int64_t columns = size.columns;
  for (std::int64_t row = 0; row < size.rows; ++row, x += columns, y += columns) {
    const float squares = lane_sum(columns, [&](std::int64_t c) { return x[c] * x[c]; });
    const float scale = 1.0F / std::sqrt(squares / static_cast<float>(columns) + epsilon);
    rstd[row] = scale;
    for (std::int64_t c = 0; c < columns; ++c) y[c] = x[c] * scale * gain[c];
  }
}

void rms_norm_backward(float* dx, float* dgain, const float* dy, const float* residual_gradient, const float* x,
                       const float* rstd, const float* gain, const NormSize& size) {
  const std::int64_t columns = size.columns;
  for (std::int64_t row = 0; row < size.rows; ++row) {
    const float* x_row = x + row * columns;
    const float* dy_row = dy + row * columns;
    float* dx_row = dx + row * columns;
    const float scale = rstd[row];
    for (std::int64_t c = 0; c < columns; ++c) dgain[c] += dy_row[c] * (x_row[c] * scale);
    const float projection = lane_sum(columns, [&](std::int64_t c) { return dy_row[c] * gain[c] * x_row[c]; }) * scale *
                             scale / static_cast<float>(columns);
    if (residual_gradient == nullptr) {
      for (std::int64_t c = 0; c < columns; ++c) dx_row[c] = scale * (dy_row[c] * gain[c] - x_row[c] * projection);
    } else {
      const float* past = residual_gradient + row * columns;
      for (std::int64_t c = 0; c < columns; ++c)
        dx_row[c] = past[c] + scale * (dy_row[c] * gain[c] - x_row[c] * projection);
    }
  }
}

void layer_norm_forward(float* y, float* mean, float* rstd, const float* x, const float* gain, const float* bias,
                        const NormSize& size, float epsilon) {
  const std::int64_t columns = size.columns;
  const float count = static_cast<float>(columns);
  for (std::int64_t row = 0; row < size.rows; ++row, x += columns, y += columns) {
    const float center = lane_sum(columns, [&](std::int64_t c) { return x[c]; }) / count;
    const float squares = lane_sum(columns, [&](std::int64_t c) { return (x[c] - center) * (x[c] - center); });
    const float scale = 1.0F / std::sqrt(squares / count + epsilon);
    mean[row] = center;
    rstd[row] = scale;
    for (std::int64_t c = 0; c < columns; ++c) y[c] = (x[c] - center) * scale * gain[c] + bias[c];
  }
}

void layer_norm_backward(float* dx, float* dgain, float* dbias, const float* dy, const float* residual_gradient,
                         const float* x, const float* mean, const float* rstd, const float* gain,
                         const NormSize& size) {
  const std::int64_t columns = size.columns;
  const float count = static_cast<float>(columns);
  for (std::int64_t row = 0; row < size.rows; ++row) {
    const float* x_row = x + row * columns;
    const float* dy_row = dy + row * columns;
    float* dx_row = dx + row * columns;
    const float scale = rstd[row], center = mean[row];
    for (std::int64_t c = 0; c < columns; ++c) dgain[c] += dy_row[c] * ((x_row[c] - center) * scale);
    for (std::int64_t c = 0; c < columns; ++c) dbias[c] += dy_row[c];
    const float average = lane_sum(columns, [&](std::int64_t c) { return dy_row[c] * gain[c]; }) / count;
    const float projection =
        lane_sum(columns, [&](std::int64_t c) { return dy_row[c] * gain[c] * (x_row[c] - center); }) * scale * scale /
        count;
    if (residual_gradient == nullptr) {
      for (std::int64_t c = 0; c < columns; ++c)
        dx_row[c] = scale * (dy_row[c] * gain[c] - average - (x_row[c] - center) * projection);
    } else {
      const float* past = residual_gradient + row * columns;
      for (std::int64_t c = 0; c < columns; ++c)
        dx_row[c] = past[c] + scale * (dy_row[c] * gain[c] - average - (x_row[c] - center) * projection);
    }
  }
}

}}  // namespace plumb::kernels
