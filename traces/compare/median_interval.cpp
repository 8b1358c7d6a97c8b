#include "traces/compare/median_interval.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace plumb { inline namespace traces {
namespace {

constexpr double kLeastConfidence = 0.95;

}  // namespace

MedianInterval median_interval(std::vector<SimTime> measured) {
  assert(!measured.empty());
  std::ranges::sort(measured);
  const auto n = static_cast<double>(measured.size());
  std::size_t k = 0;      // order statistic of the interval that is kept, counted from 0
  double below = 0;       // P(Binomial(n, 1/2) < k + 1) of that interval
  double log_choose = 0;  // log of n choose i
  double sum = 0;
  for (std::size_t i = 0; 2 * (i + 1) <= measured.size() + 1; ++i) {
    sum += std::exp(log_choose - n * std::log(2.0));
    if (i > 0 && 1 - 2 * sum < kLeastConfidence) break;
    k = i;
    below = sum;
    log_choose += std::log((n - static_cast<double>(i)) / static_cast<double>(i + 1));
  }
  return {
      .low = measured[k], .high = measured[measured.size() - 1 - k], .confidence_ratio = std::max(0.0, 1 - 2 * below)};
}

}}  // namespace plumb::traces
