#pragma once
// Draws values to both sides of 0, each with the range in which it lies (SVG).
//
//   difference_chart_svg("errors by source", "%", {{"step time", {{"dgxc.json", -0.5, {{-8, 4}}, "144 rows"}}}})

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plumb { inline namespace traces {

/// A value that is above or below 0, and the range in which it lies.
struct Difference {
  std::string name;
  double value = 0;
  std::optional<std::pair<double, double>> range;  ///< from the lowest to the highest
  std::string label;                               ///< shown behind the value
};

/// Differences that stand together.
struct DifferencePanel {
  std::string title;
  std::vector<Difference> rows;
};

/// Returns a self-contained SVG document. A row has its bar from 0, its range as a line across it, its value in the
/// unit, and its label. All panels have one axis, which ends at `most` at the latest: what lies beyond is cut there, and
/// an arrow says so. Panels without rows are left out. Deterministic.
std::string difference_chart_svg(const std::string& title, const std::string& unit, double most,
                                 const std::vector<DifferencePanel>& panels);

}}  // namespace plumb::traces
