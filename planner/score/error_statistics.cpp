#include "planner/score/error_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plumb { inline namespace planner {
namespace {

/// Returns the rank of each value, 0 for the smallest; equal values share the mean of their ranks.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    const double shared = static_cast<double>(first + end - 1) / 2;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = shared;
    first = end;
  }
  return ranks;
}

}  // namespace

ErrorStatistics error_statistics(const std::vector<double>& errors_pct) {
  if (errors_pct.empty()) return {};
  std::vector<double> sizes;
  sizes.reserve(errors_pct.size());
  for (const double error : errors_pct) sizes.push_back(std::abs(error));
  std::ranges::sort(sizes);
  const auto count = static_cast<double>(sizes.size());
  const std::size_t middle = sizes.size() / 2;
  return {.count = static_cast<int>(sizes.size()),
          .mean_pct = std::accumulate(sizes.begin(), sizes.end(), 0.0) / count,
          .median_pct = sizes.size() % 2 == 1 ? sizes[middle] : (sizes[middle - 1] + sizes[middle]) / 2,
          .worst_pct = sizes.back(),
          .bias_pct = std::accumulate(errors_pct.begin(), errors_pct.end(), 0.0) / count};
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double products = 0, x_squares = 0, y_squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    products += (x[i] - mean) * (y[i] - mean);
    x_squares += (x[i] - mean) * (x[i] - mean);
    y_squares += (y[i] - mean) * (y[i] - mean);
  }
  return x_squares > 0 && y_squares > 0 ? products / std::sqrt(x_squares * y_squares) : 0;
}

double top1_regret_pct(const std::vector<double>& predicted, const std::vector<double>& measured) {
  const auto chosen = std::ranges::min_element(predicted) - predicted.begin();
  return 100 * (measured[static_cast<std::size_t>(chosen)] / *std::ranges::min_element(measured) - 1);
}

}}  // namespace plumb::planner
