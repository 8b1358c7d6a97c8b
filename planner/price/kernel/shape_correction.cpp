#include "planner/price/kernel/shape_correction.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace plumb { inline namespace planner {
namespace {

constexpr std::size_t kNeighbours = 8;

std::vector<double> log_shape(const std::vector<std::int64_t>& shape) {
  std::vector<double> result;
  result.reserve(shape.size());
  for (const std::int64_t size : shape) result.push_back(std::log2(1.0 + static_cast<double>(size)));
  return result;
}

double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  assert(a.size() == b.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

}  // namespace

ShapeCorrection shape_correction(const std::vector<std::int64_t>& shape, double measured, double modelled) {
  return {.log_shape = log_shape(shape), .log_ratio = std::log(measured / modelled)};
}

double correction_factor(const std::vector<ShapeCorrection>& corrections, const std::vector<std::int64_t>& shape) {
  if (corrections.empty()) return 1;
  const std::vector<double> at = log_shape(shape);
  std::vector<std::pair<double, double>> nearest;  // squared distance, log ratio
  nearest.reserve(corrections.size());
  for (const ShapeCorrection& c : corrections) nearest.emplace_back(squared_distance(at, c.log_shape), c.log_ratio);
  const std::size_t count = std::min(kNeighbours, nearest.size());
  std::partial_sort(nearest.begin(), nearest.begin() + static_cast<std::ptrdiff_t>(count), nearest.end());
  constexpr double kSamePoint = 1e-12;
  if (nearest.front().first < kSamePoint) return std::exp(nearest.front().second);
  double weights = 0;
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = std::pow(nearest[i].first, -1.5);
    weights += weight;
    sum += weight * nearest[i].second;
  }
  return std::exp(sum / weights);
}

}}  // namespace plumb::planner
