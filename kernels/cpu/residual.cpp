#include "kernels/cpu/residual.h"

namespace plumb { inline namespace kernels {

void residual_add(float* z, const float* x, const float* y, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows * columns; ++i) z[i] = x[i] + y[i];
}

}}  // namespace plumb::kernels
