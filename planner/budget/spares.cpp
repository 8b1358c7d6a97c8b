#include "planner/budget/spares.h"

#include <cmath>

namespace plumb { inline namespace planner {

int spare_nodes(double mean_repaired, double probability) {
  constexpr double kLargestMean = 500;  // beyond it e^-mean is hardly a double, and the normal quantile is exact enough
  if (mean_repaired > kLargestMean) {
    constexpr double kDeviations = 6;  // far above the quantile; the sum below begins here and goes down
    int spares = static_cast<int>(mean_repaired + kDeviations * std::sqrt(mean_repaired));
    const auto exceeds = [&](int s) {
      return 0.5 * std::erfc((s + 0.5 - mean_repaired) / std::sqrt(2 * mean_repaired)) > 1 - probability;
    };
    while (spares > 0 && !exceeds(spares - 1)) --spares;
    return spares;
  }
  double term = std::exp(-mean_repaired), sum = term;
  int spares = 0;
  while (sum < probability) {
    ++spares;
    term *= mean_repaired / spares;
    if (term == 0) break;  // the rest is below the last digit of the sum
    sum += term;
  }
  return spares;
}

}}  // namespace plumb::planner
