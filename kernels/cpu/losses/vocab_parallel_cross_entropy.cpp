#include "kernels/cpu/losses/vocab_parallel_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/reduce.h"
#include "kernels/cpu/softcap.h"

namespace plumb { inline namespace kernels {
namespace {

bool has_target(const VocabPart& part, std::int32_t target) {
  return target >= part.first && target < part.first + part.valid;
}

}  // namespace

void cross_entropy_parts(float* parts, float* logits, const std::int32_t* targets, const VocabPart& part) {
  for (std::int64_t row = 0; row < part.rows; ++row, logits += part.columns) {
    if (part.softcap > 0) softcap(logits, part.valid, part.softcap);
    const float largest = part.valid > 0 ? lane_max(logits, part.valid) : -std::numeric_limits<float>::infinity();
    parts[row] = largest;
    parts[part.rows + row] = lane_sum(part.valid, [&](std::int64_t c) { return std::exp(logits[c] - largest); });
    parts[2 * part.rows + row] = has_target(part, targets[row]) ? logits[targets[row] - part.first] : 0.0F;
  }
}

double cross_entropy_from_parts(float* logits, const float* all_parts, int ranks, const std::int32_t* targets,
                                const VocabPart& part, float gradient_scale) {
  double loss = 0;
  for (std::int64_t row = 0; row < part.rows; ++row, logits += part.columns) {
    float largest = -std::numeric_limits<float>::infinity();
    for (int rank = 0; rank < ranks; ++rank) largest = std::max(largest, all_parts[3 * rank * part.rows + row]);
    float sum = 0, target_logit = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const float* own = all_parts + 3 * rank * part.rows + row;
      sum += own[part.rows] * std::exp(own[0] - largest);
      target_logit += own[2 * part.rows];
    }
    loss += std::log(static_cast<double>(sum)) + static_cast<double>(largest) - static_cast<double>(target_logit);
    const float scale = gradient_scale / sum;
    const auto slope = [&](float capped) { return part.softcap > 0 ? softcap_slope(capped, part.softcap) : 1.0F; };
    for (std::int64_t c = 0; c < part.valid; ++c) logits[c] = scale * std::exp(logits[c] - largest) * slope(logits[c]);
    std::fill(logits + part.valid, logits + part.columns, 0.0F);
    if (has_target(part, targets[row])) logits[targets[row] - part.first] -= gradient_scale * slope(target_logit);
  }
  return loss;
}

}}  // namespace plumb::kernels
