#pragma once
// The tests of GPU kernels' bodies share these functions: tensors in their stored format, and tolerances for rounding.

#include <type_traits>
#include <vector>

#include "kernels/simt/number.h"
#include "tests/kernels/cpu/checks.h"
#include "tests/kernels/simt/run_on_host.h"

namespace plumb::test {

inline constexpr int kLanes = 64;
inline constexpr int kBlocks = 3;
inline constexpr double kFloatTolerance = 2e-6;

/// Returns the values as a tensor of S stores them.
template <class S>
std::vector<S> stored(const Values& values) {
  std::vector<S> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) store(result[i], values[i]);
  return result;
}
template <class S>
Values widened_all(const std::vector<S>& values) {
  Values result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) result[i] = widened(values[i]);
  return result;
}

/// Returns the tolerance for rounding to S (8 and 11 bits of mantissa) in sums of some hundred numbers.
template <class S>
constexpr double tolerance() {
  if (std::is_same_v<S, float>) return kFloatTolerance;
  return std::is_same_v<S, Bf16> ? 1e-2 : 2e-3;
}

}  // namespace plumb::test
