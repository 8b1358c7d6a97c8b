#pragma once
// Pairs of two factors' values. A covering set of products has each pair that can exist.

#include <array>
#include <cstddef>
#include <vector>

namespace plumb::test {

using FactorPair = std::array<int, 4>;  ///< two factors, in ascending order, and their values

template <std::size_t kFactors>
std::vector<FactorPair> pairs_of(const std::array<int, kFactors>& product) {
  std::vector<FactorPair> pairs;
  for (std::size_t a = 0; a < kFactors; ++a)
    for (std::size_t b = a + 1; b < kFactors; ++b)
      pairs.push_back({static_cast<int>(a), static_cast<int>(b), product[a], product[b]});
  return pairs;
}

}  // namespace plumb::test
