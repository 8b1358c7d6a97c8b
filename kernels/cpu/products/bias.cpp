#include "kernels/cpu/products/bias.h"

namespace plumb { inline namespace kernels {

void bias_forward(float* y, const float* bias, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row, y += columns)
    for (std::int64_t c = 0; c < columns; ++c) y[c] += bias[c];
}

void bias_backward(float* dbias, const float* dy, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row, dy += columns)
    for (std::int64_t c = 0; c < columns; ++c) dbias[c] += dy[c];
}

}}  // namespace plumb::kernels
