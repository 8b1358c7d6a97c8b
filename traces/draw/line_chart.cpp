#include "traces/draw/line_chart.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "traces/draw/svg_style.h"

namespace plumb { inline namespace traces {
namespace {

constexpr double kPlotWidth = 560, kPlotHeight = 340;  // of the plot
constexpr double kPlotLeft = 84, kPlotTop = 44, kBelowPlot = 52, kNamesWidth = 260, kNameHeight = 18,
                 kLetterWidth = 6.2;
constexpr double kLogarithmicFrom = 8;  // largest over smallest value

std::optional<double> number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns the places of the x values on the axis, from 0 to 1.
std::vector<double> places_of(const std::vector<std::string>& values) {
  std::vector<double> places;
  for (const std::string& text : values) {
    const std::optional<double> number = number_of(text);
    if (!number) break;
    places.push_back(*number);
  }
  const bool numbers = places.size() == values.size();
  if (!numbers) {
    places.clear();
    for (std::size_t i = 0; i < values.size(); ++i) places.push_back(static_cast<double>(i));
  }
  if (places.empty()) return places;
  auto [least, most] = std::ranges::minmax(places);
  if (numbers && least > 0 && most >= kLogarithmicFrom * least) {
    for (double& place : places) place = std::log(place);
    least = std::log(least), most = std::log(most);
  }
  for (double& place : places) place = most > least ? (place - least) / (most - least) : 0.5;
  return places;
}

double x_of(double place) {
  constexpr double kMargin = 0.04;  // between the frame and the outermost values
  return kPlotLeft + kPlotWidth * (kMargin + (1 - 2 * kMargin) * place);
}

double largest_y(const LineChart& chart) {
  double most = 0;
  for (const LineSeries& one : chart.series)
    for (const std::optional<double>& y : one.y) most = std::max(most, y.value_or(0));
  return most > 0 ? most : 1;
}

std::string text_at(double x, double y, std::string_view more, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#222222\" {}>{}</text>\n", x, y, more, escaped(text));
}

std::string axes(const LineChart& chart, const std::vector<double>& places, double step, double top) {
  const double bottom = kPlotTop + kPlotHeight;
  std::string svg;
  for (int tick = 0; tick * step <= top * (1 + 1e-9); ++tick) {
    const double y = bottom - kPlotHeight * (tick * step / top);
    svg += fmt::format("<line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" y2=\"{:.1f}\" stroke=\"#e5e5e5\"/>\n", kPlotLeft, y,
                       kPlotLeft + kPlotWidth, y);
    svg += text_at(kPlotLeft - 6, y + 4, "text-anchor=\"end\"", fmt::format("{:.6g}", tick * step));
  }
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double x = x_of(places[i]);
    svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#888888\"/>\n", x, bottom,
                       bottom + 4);
    svg += text_at(x, bottom + 17, "text-anchor=\"middle\"", chart.x_values[i]);
  }
  svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888888\"/>\n",
                     kPlotLeft, kPlotTop, kPlotWidth, kPlotHeight);
  svg += text_at(kPlotLeft + kPlotWidth / 2, bottom + 38, "text-anchor=\"middle\"", chart.x_label);
  const std::string turned =
      fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 18 {:.1f})\"", kPlotTop + kPlotHeight / 2);
  return svg + text_at(18, kPlotTop + kPlotHeight / 2, turned, chart.y_label);
}

std::string line_of(const LineSeries& series, const std::vector<double>& places, std::string_view color, double top) {
  std::string path, marks;
  bool drawn = false;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!series.y[i]) {
      drawn = false;
      continue;
    }
    const double x = x_of(places[i]), y = kPlotTop + kPlotHeight * (1 - *series.y[i] / top);
    path += fmt::format("{}{:.1f} {:.1f}", drawn ? "L" : "M", x, y);
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x, y, color);
    drawn = true;
  }
  if (path.empty()) return {};
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", path, color) + marks;
}

}  // namespace

double tick_distance(double most) {
  constexpr double kMostTicks = 10;
  const double power = std::pow(10.0, std::floor(std::log10(most / kMostTicks)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (most / (factor * power) <= kMostTicks) return factor * power;
  return 10 * power;
}

std::string line_chart_svg(const LineChart& chart) {
  const std::vector<double> places = places_of(chart.x_values);
  const double step = tick_distance(largest_y(chart));
  const double top = std::ceil(largest_y(chart) / step) * step;
  std::string body = text_at(kPlotLeft, 24, "font-size=\"13\"", chart.title) + axes(chart, places, step, top);
  std::size_t named = 0, longest = 0;  // of the names
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const std::string_view color = kChartColors[i % kChartColors.size()];
    body += line_of(chart.series[i], places, color, top);
    if (chart.series[i].name.empty()) continue;
    const double y = kPlotTop + kNameHeight * (static_cast<double>(named++) + 0.5);
    longest = std::max(longest, chart.series[i].name.size());
    body += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"14\" height=\"4\" fill=\"{}\"/>\n",
                        kPlotLeft + kPlotWidth + 16, y - 2, color);
    body += text_at(kPlotLeft + kPlotWidth + 36, y + 4, "", chart.series[i].name);
  }
  const double height =
      std::max(kPlotTop + kPlotHeight + kBelowPlot, kPlotTop + kNameHeight * static_cast<double>(named + 1));
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" font-family=\"Helvetica, Arial, "
             "sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
             kPlotLeft + kPlotWidth +
                 (named > 0 ? std::max(kNamesWidth, 40 + kLetterWidth * static_cast<double>(longest)) : 24),
             height) +
         body + "</svg>\n";
}

}}  // namespace plumb::traces
