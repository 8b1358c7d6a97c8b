#include "planner/score/scatter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "traces/draw/svg_style.h"

namespace plumb { inline namespace planner {
namespace {

constexpr double kSide = 520;
constexpr double kLeft = 70;
constexpr double kTop = 40;
constexpr double kLegendWidth = 300;
constexpr double kRowHeight = 18;
constexpr double kBand = 0.1;
constexpr double kRadius = 2.6;

constexpr std::array<std::string_view, 12> kColors = {"#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948",
                                                      "#b07aa1", "#ff9da7", "#9c755f", "#bab0ac", "#1b9e77", "#7570b3"};

/// Each round of the colours has a mark of its own: a disc, a square, a triangle, a ring.
constexpr std::size_t kMarks = 4;

/// Returns the mark of the n-th series at (x, y).
std::string mark(std::size_t series, double x, double y, double radius, std::string_view more) {
  const std::string_view color = kColors[series % kColors.size()];
  switch (series / kColors.size() % kMarks) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"{}/>\n", x, y, radius, color, more);
    case 1:
      return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"{}/>\n",
                         x - radius, y - radius, 2 * radius, 2 * radius, color, more);
    case 2:
      return fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}Z\" fill=\"{}\"{}/>\n", x, y - radius,
                         x - radius, y + radius, x + radius, y + radius, color, more);
    default:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"none\" stroke=\"{}\"{}/>\n", x, y, radius,
                         color, more);
  }
}

/// Powers of ten between which all points lie.
struct Decades {
  int low = 0;
  int high = 1;
};

Decades decades_of(const std::vector<ScatterSeries>& series) {
  double least = 0, most = 0;
  for (const ScatterSeries& one : series) {
    for (const auto& [measured, predicted] : one.points) {
      for (const double value : {measured, predicted}) {
        least = least == 0 ? value : std::min(least, value);
        most = std::max(most, value);
      }
    }
  }
  if (least <= 0) return {};
  const auto low = static_cast<int>(std::floor(std::log10(least)));
  return {.low = low, .high = std::max(low + 1, static_cast<int>(std::ceil(std::log10(most))))};
}

class Scatter {
 public:
  explicit Scatter(Decades decades) : decades_(decades) {}

  double x(double value) const { return kLeft + share(value) * kSide; }
  double y(double value) const { return kTop + (1 - share(value)) * kSide; }

  std::string axes(std::string_view unit) const {
    std::string text =
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888888\"/>\n", kLeft,
                    kTop, kSide, kSide);
    for (int decade = decades_.low; decade <= decades_.high; ++decade) {
      const double value = std::pow(10.0, decade);
      text += line(value, least(), value, most(), "#e5e5e5") + line(least(), value, most(), value, "#e5e5e5");
      text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#444444\">{:g}</text>\n",
                          x(value), kTop + kSide + 16, value);
      text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#444444\">{:g}</text>\n",
                          kLeft - 6, y(value) + 4, value);
    }
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#222222\">measured, {}</text>\n",
                        kLeft + kSide / 2, kTop + kSide + 34, escaped(unit));
    text += fmt::format(
        "<text x=\"16\" y=\"{0:.1f}\" text-anchor=\"middle\" fill=\"#222222\" transform=\"rotate(-90 16 "
        "{0:.1f})\">predicted, {1}</text>\n",
        kTop + kSide / 2, escaped(unit));
    text += line(least(), least(), most(), most(), "#222222");
    text += line(least() * (1 + kBand), least(), most(), most() / (1 + kBand), "#bbbbbb");
    return text + line(least(), least() * (1 + kBand), most() / (1 + kBand), most(), "#bbbbbb");
  }

 private:
  double share(double value) const { return (std::log10(value) - decades_.low) / (decades_.high - decades_.low); }
  double least() const { return std::pow(10.0, decades_.low); }
  double most() const { return std::pow(10.0, decades_.high); }
  /// Returns a line from (measured, predicted) to (measured, predicted).
  std::string line(double x0, double y0, double x1, double y1, std::string_view color) const {
    return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x(x0), y(y0),
                       x(x1), y(y1), color);
  }

  Decades decades_;
};

}  // namespace

std::string scatter_svg(const std::vector<ScatterSeries>& series, std::string_view title, std::string_view unit) {
  const Scatter scatter(decades_of(series));
  std::string body =
      fmt::format("<text x=\"{}\" y=\"22\" font-size=\"13\" fill=\"#222222\">{}</text>\n", kLeft, escaped(title)) +
      scatter.axes(unit);
  std::size_t shown = 0;
  for (const ScatterSeries& one : series) {
    if (one.points.empty()) continue;
    for (const auto& [measured, predicted] : one.points)
      body += mark(shown, scatter.x(measured), scatter.y(predicted), kRadius, " opacity=\"0.6\"");
    const double y = kTop + kRowHeight * (static_cast<double>(shown) + 0.5);
    body += mark(shown, kLeft + kSide + 20, y, 5, "");
    body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#222222\">{} ({})</text>\n", kLeft + kSide + 32, y + 4,
                        escaped(one.name), one.points.size());
    ++shown;
  }
  const double height = std::max(kTop + kSide + 44, kTop + kRowHeight * static_cast<double>(shown + 1));
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" font-family=\"Helvetica, Arial, "
             "sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
             kLeft + kSide + kLegendWidth, height) +
         body + "</svg>\n";
}

}}  // namespace plumb::planner
