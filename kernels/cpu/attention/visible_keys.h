#pragma once
// The treatment of a query's row of scores that both of the host's attentions share: of slices (attention.h) and of
// pieces (attention_piece.h).

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/softcap.h"

namespace plumb { inline namespace kernels {

/// The keys that a query sees: [begin, end) of those in the block or piece.
struct VisibleKeys {
  std::int64_t begin;
  std::int64_t end;
};

/// Sets the scores of the keys that a query does not see to 0. scores: [count]
inline void hide_others(float* scores, const VisibleKeys& keys, std::int64_t count) {
  std::fill(scores, scores + keys.begin, 0.0F);
  std::fill(scores + keys.end, scores + count, 0.0F);
}

/// Multiplies the gradients of capped scores by the slopes of the cap. A score is the logarithm of its probability plus
/// the log-sum-exp. gradients, probabilities: [count]
inline void scale_by_slopes(float* gradients, const float* probabilities, float log_sum_exp, std::int64_t count,
                            float cap) {
  for (std::int64_t i = 0; i < count; ++i)
    if (probabilities[i] > 0) gradients[i] *= softcap_slope(std::log(probabilities[i]) + log_sum_exp, cap);
}

/// Returns 1 / sqrt(d).
inline float score_scale(const AttentionSize& size) {
  return 1.0F / std::sqrt(static_cast<float>(size.head_size));
}

}}  // namespace plumb::kernels
