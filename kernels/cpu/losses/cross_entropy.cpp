#include "kernels/cpu/losses/cross_entropy.h"

#include <cmath>

#include "kernels/cpu/reduce.h"

namespace plumb { inline namespace kernels {

double cross_entropy(float* logits, const std::int32_t* targets, std::int64_t rows, std::int64_t columns,
                     float gradient_scale) {
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row, logits += columns) {
    const float largest = lane_max(logits, columns);
    const float target_logit = logits[targets[row]];
    for (std::int64_t c = 0; c < columns; ++c) logits[c] = std::exp(logits[c] - largest);
    const float sum = lane_sum(columns, [&](std::int64_t c) { return logits[c]; });
    loss += std::log(static_cast<double>(sum)) + static_cast<double>(largest) - static_cast<double>(target_logit);
    const float scale = gradient_scale / sum;
    for (std::int64_t c = 0; c < columns; ++c) logits[c] *= scale;
    logits[targets[row]] -= gradient_scale;
  }
  return loss;
}

}}  // namespace plumb::kernels
