#pragma once
// Soft-capping: tanh bounds scores or logits softly (Gemma Team 2024, 2408.00118, section 2). The cap is above 0.

#include <cmath>
#include <cstdint>

namespace plumb { inline namespace kernels {

/// values := cap * tanh(values / cap)
inline void softcap(float* values, std::int64_t count, float cap) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = cap * std::tanh(values[i] / cap);
}

/// Returns the derivative of softcap at the place that it has taken to `capped`.
inline float softcap_slope(float capped, float cap) {
  return 1.0F - capped / cap * (capped / cap);
}

}}  // namespace plumb::kernels
