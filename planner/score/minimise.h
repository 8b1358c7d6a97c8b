#pragma once
// The minimum of a function of a few numbers in a box, without derivatives.

#include <functional>
#include <vector>

namespace plumb { inline namespace planner {

struct Interval {
  double low = 0;
  double high = 1;
};

/// Returns the place where `function` is smallest, among those that a search by coordinates visits. In turn each
/// coordinate is bracketed on a grid of nine values and narrowed by golden sections (Kiefer 1953), until a round gains
/// less than `tolerance` of the value or eight rounds are over. `start` lies in the box and is returned where nothing
/// is better.
std::vector<double> minimise(const std::function<double(const std::vector<double>&)>& function,
                             const std::vector<Interval>& box, std::vector<double> start, double tolerance = 1e-3);

}}  // namespace plumb::planner
