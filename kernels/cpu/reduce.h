#pragma once
// Sums in a fixed order: 16 interleaved partial sums, added pairwise at the end, then the rest. The order depends on
// the length alone, so results do not depend on threads or alignment, and the compiler can keep the lanes in vector
// registers.

#include <algorithm>
#include <array>
#include <cstdint>

namespace plumb { inline namespace kernels {

inline constexpr int kLanes = 16;

/// Sum of term(i) for i in [0, count).
template <class Term>
float lane_sum(std::int64_t count, Term term) {
  std::array<float, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  float total = lanes[0];
  for (; i < count; ++i) total += term(i);
  return total;
}

/// Largest of values[0, count); count >= 1. values: [count]
inline float lane_max(const float* values, std::int64_t count) {
  std::array<float, kLanes> lanes;
  lanes.fill(values[0]);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = std::max(lanes[lane], values[i + lane]);
  float largest = *std::max_element(lanes.begin(), lanes.end());
  for (; i < count; ++i) largest = std::max(largest, values[i]);
  return largest;
}

}}  // namespace plumb::kernels
