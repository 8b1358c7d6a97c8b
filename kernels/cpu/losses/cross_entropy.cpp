#include "kernels/cpu/losses/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/reduce.h"
#include "kernels/cpu/softcap.h"

namespace plumb { inline namespace kernels {

double cross_entropy(float* logits, const std::int32_t* targets, std::int64_t rows, std::int64_t columns,
                     float gradient_scale, std::int64_t padding, float cap) {
  const std::int64_t tokens = columns - padding;
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row, logits += columns) {
    if (cap > 0) softcap(logits, tokens, cap);
    const float largest = lane_max(logits, tokens);
    const float target_logit = logits[targets[row]];
    for (std::int64_t c = 0; c < tokens; ++c) logits[c] = std::exp(logits[c] - largest);
    const float sum = lane_sum(tokens, [&](std::int64_t c) { return logits[c]; });
    loss += std::log(static_cast<double>(sum)) + static_cast<double>(largest) - static_cast<double>(target_logit);
    const float scale = gradient_scale / sum;
    // A capped logit is the logarithm of its exponential plus the largest; one whose exponential is 0 has no gradient.
    if (cap > 0)
      for (std::int64_t c = 0; c < tokens; ++c)
        if (logits[c] > 0) logits[c] *= softcap_slope(std::log(logits[c]) + largest, cap);
    for (std::int64_t c = 0; c < tokens; ++c) logits[c] *= scale;
    std::fill_n(logits + tokens, padding, 0.0F);
    logits[targets[row]] -= cap > 0 ? gradient_scale * softcap_slope(target_logit, cap) : gradient_scale;
  }
  return loss;
}

}}  // namespace plumb::kernels
