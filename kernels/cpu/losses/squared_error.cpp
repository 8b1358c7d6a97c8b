#include "kernels/cpu/losses/squared_error.h"

#include "kernels/cpu/reduce.h"

namespace plumb { inline namespace kernels {

double squared_error(float* y, const float* targets, std::int64_t rows, std::int64_t columns, float gradient_scale) {
  double loss = 0;
  const float scale = 2.0F * gradient_scale / static_cast<float>(columns);
  for (std::int64_t row = 0; row < rows; ++row, y += columns, targets += columns) {
    for (std::int64_t c = 0; c < columns; ++c) y[c] -= targets[c];
    loss += static_cast<double>(lane_sum(columns, [&](std::int64_t c) { return y[c] * y[c]; })) /
            static_cast<double>(columns);
    for (std::int64_t c = 0; c < columns; ++c) y[c] *= scale;
  }
  return loss;
}

}}  // namespace plumb::kernels
