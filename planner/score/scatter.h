#pragma once
// A picture of predictions and measurements.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb { inline namespace planner {

struct ScatterSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< (measured, predicted), both above 0
};

/// Returns an SVG: both axes are logarithmic and alike and have the `unit`, each series has a colour, the diagonal
/// shows where prediction and measurement agree, and lines run 10 % above and below it. The legend has only series with
/// points.
std::string scatter_svg(const std::vector<ScatterSeries>& series, std::string_view title, std::string_view unit);

}}  // namespace plumb::planner
