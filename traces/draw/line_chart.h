#pragma once
// Draws series of numbers as lines over a common axis (SVG).
//
//   line_chart_svg({.title = "step time", .x_label = "network.bandwidth_gb_per_s", .y_label = "step time, s",
//                   .x_values = {"25", "50"}, .series = {{"pp=4", {6.5, 6.1}}, {"pp=8", {6.9, 6.0}}}})

#include <optional>
#include <string>
#include <vector>

namespace plumb { inline namespace traces {

struct LineSeries {
  std::string name;                      ///< of the legend; empty: none
  std::vector<std::optional<double>> y;  ///< [x value]; nothing: a gap
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<std::string> x_values;  ///< as they are written below the axis; numbers stand at their places on it
  std::vector<LineSeries> series;
};

/// Returns a self-contained SVG document. Where all x values are numbers, the axis is linear, or logarithmic if the
/// largest is 8 times the smallest or more and all are above 0; other values stand side by side. The y axis begins at
/// 0. Values that a line lacks interrupt it. Deterministic.
std::string line_chart_svg(const LineChart& chart);

/// Returns the distance of ticks, 1, 2 or 5 times a power of ten, with which 4 to 10 of them reach from 0 to `most`.
double tick_distance(double most);

}}  // namespace plumb::traces
