#pragma once
// References of layers compute in double, with operands that fp32 has exactly.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/counter_random.h"

namespace plumb::test {

using Doubles = std::vector<double>;

/// Returns normally distributed numbers, other ones for each stream.
inline Doubles numbers(std::int64_t count, std::uint64_t stream, double scale) {
  Doubles values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(scale * double(standard_normal({77, stream, static_cast<std::uint64_t>(i)}))));
  return values;
}

inline void copy(const Doubles& from, std::span<float> to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<float>(from[i]);
}

/// Returns the largest |a - b| over the largest |b|.
inline double difference(std::span<const float> a, const Doubles& b) {
  double worst = 0, largest = 1e-30;
  for (std::size_t i = 0; i < b.size(); ++i) {
    worst = std::max(worst, std::abs(double(a[i]) - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return worst / largest;
}

}  // namespace plumb::test
