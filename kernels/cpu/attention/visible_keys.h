#pragma once
// What both of the host's attentions, of slices (attention.h) and of pieces (attention_piece.h), do with a query's row
// of scores.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cpu/attention/attention.h"

namespace plumb { inline namespace kernels {

/// The keys that a query sees: [begin, end) of those that are there.
struct VisibleKeys {
  std::int64_t begin;
  std::int64_t end;
};

/// scores: [count], of which those of the hidden keys become 0.
inline void hide_others(float* scores, const VisibleKeys& keys, std::int64_t count) {
  std::fill(scores, scores + keys.begin, 0.0F);
  std::fill(scores + keys.end, scores + count, 0.0F);
}

/// 1 / sqrt(d)
inline float score_scale(const AttentionSize& size) {
  return 1.0F / std::sqrt(static_cast<float>(size.head_size));
}

}}  // namespace plumb::kernels
