#pragma once
// Predictions against measurements as a picture.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plumb { inline namespace planner {

struct ScatterSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< (measured, predicted), both above 0
};

/// An SVG: both axes logarithmic and alike, one colour a series, the diagonal where prediction and measurement agree,
/// and lines 10 % above and below it. `unit` is that of both axes. Series without points do not stand in the legend.
std::string scatter_svg(const std::vector<ScatterSeries>& series, std::string_view title, std::string_view unit);

}}  // namespace plumb::planner
