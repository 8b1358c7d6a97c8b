#include "planner/budget/scaling_knee.h"

#include <cmath>
#include <cstddef>

namespace plumb { inline namespace planner {

double scaling_elasticity(const ScalingPoint& fewer, const ScalingPoint& more) {
  return std::log(more.rate / fewer.rate) / std::log(more.devices / fewer.devices);
}

std::optional<std::size_t> scaling_knee(const std::vector<ScalingPoint>& points) {
  std::vector<std::size_t> hull;
  const auto slope = [&](std::size_t from, std::size_t to) { return scaling_elasticity(points[from], points[to]); };
  for (std::size_t i = 0; i < points.size(); ++i) {
    while (hull.size() >= 2 && slope(hull[hull.size() - 2], hull.back()) <= slope(hull.back(), i)) hull.pop_back();
    hull.push_back(i);
  }
  for (std::size_t i = 0; i + 1 < hull.size(); ++i)
    if (slope(hull[i], hull[i + 1]) < kKneeElasticity) return hull[i];
  return std::nullopt;
}

}}  // namespace plumb::planner
