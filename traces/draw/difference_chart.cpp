#include "traces/draw/difference_chart.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "traces/draw/line_chart.h"
#include "traces/draw/svg_style.h"

namespace plumb { inline namespace traces {
namespace {

constexpr double kNames = 270, kBars = 330, kLabels = 320, kDifferenceRow = 17, kPanelHead = 26;
constexpr std::size_t kLongestName = 42;

/// Returns the name, cut between two characters of UTF-8 where it is too long for its column.
std::string shortened(const std::string& name) {
  if (name.size() <= kLongestName) return name;
  std::size_t end = kLongestName - 3;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return name.substr(0, end) + "...";
}

class DifferenceChart {
 public:
  DifferenceChart(std::string unit, double most, const std::vector<DifferencePanel>& panels) : unit_(std::move(unit)) {
    for (const DifferencePanel& panel : panels) {
      for (const Difference& row : panel.rows) {
        for (const double end : {row.value, row.range ? row.range->first : 0, row.range ? row.range->second : 0})
          reach_ = std::max(reach_, std::abs(end));
      }
    }
    reach_ = std::min(reach_, most);
    if (reach_ == 0) reach_ = 1;
  }

  std::string draw(const std::string& title, const std::vector<DifferencePanel>& panels) {
    text(8, "start", "#222222", title, " font-size=\"14\" font-weight=\"bold\"");
    y_ += 12;
    for (const DifferencePanel& panel : panels) {
      if (panel.rows.empty()) continue;
      y_ += kPanelHead;
      text(8, "start", "#222222", panel.title, " font-weight=\"bold\"");
      draw_grid(y_ + 6, y_ + 4 + kDifferenceRow * static_cast<double>(panel.rows.size()));
      for (const Difference& row : panel.rows) draw_row(row);
      y_ += 16;
      draw_marks();
    }
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {:.0f}\" font-family=\"Helvetica, Arial, "
               "sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
               kNames + kBars + kLabels, y_ + 12) +
           body_ + "</svg>\n";
  }

 private:
  double x_of(double value) const { return kNames + kBars * (0.5 + 0.5 * std::clamp(value / reach_, -1.0, 1.0)); }

  void text(double x, const char* anchor, const char* color, const std::string& words, const char* style = "") {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n", x, y_, anchor,
                         color, style, escaped(words));
  }

  void line(double x1, double x2, double y1, double y2, const char* color) {
    body_ += fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, x2, y1,
                         y2, color);
  }

  void draw_row(const Difference& row) {
    y_ += kDifferenceRow;
    text(kNames - 8, "end", "#222222", shortened(row.name));
    const double from = std::min(x_of(0), x_of(row.value)), to = std::max(x_of(0), x_of(row.value));
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"10\" fill=\"{}\"/>\n", from, y_ - 9,
                         std::max(1.0, to - from), row.value < 0 ? "#4e79a7" : "#f28e2b");
    if (row.range) {
      line(x_of(row.range->first), x_of(row.range->second), y_ - 4, y_ - 4, "#333333");
      for (const double end : {row.range->first, row.range->second}) draw_end(end);
    }
    text(kNames + kBars + 8, "start", "#444444",
         fmt::format("{:+.1f} {}{}{}", row.value, unit_, row.label.empty() ? "" : ", ", row.label));
  }

  /// Draws the end of a range: a stroke, or an arrow where it lies beyond the axis.
  void draw_end(double end) {
    if (std::abs(end) <= reach_) return line(x_of(end), x_of(end), y_ - 7, y_ - 1, "#333333");
    const double tip = x_of(end), back = end < 0 ? tip + 6 : tip - 6;
    body_ += fmt::format("<path d=\"M{0:.1f} {1:.1f}L{2:.1f} {3:.1f}L{0:.1f} {4:.1f}\" fill=\"#333333\"/>\n", back,
                         y_ - 8, tip, y_ - 4, y_);
  }

  /// Returns the round values of the axis.
  std::vector<double> marks() const {
    const double step = 2 * tick_distance(reach_);
    std::vector<double> values;
    for (double mark = -step * std::floor(reach_ / step); mark <= reach_ * (1 + 1e-9); mark += step)
      values.push_back(std::abs(mark) < step / 2 ? 0 : mark);
    return values;
  }

  void draw_grid(double top, double bottom) {
    for (const double mark : marks()) line(x_of(mark), x_of(mark), top, bottom, mark == 0 ? "#666666" : "#e2e2e2");
  }

  void draw_marks() {
    for (const double mark : marks())
      text(x_of(mark), "middle", "#666666", mark == 0 ? fmt::format("0 {}", unit_) : fmt::format("{:+.4g}", mark));
  }

  std::string unit_;
  double reach_ = 0;
  double y_ = 22;
  std::string body_;
};

}  // namespace

std::string difference_chart_svg(const std::string& title, const std::string& unit, double most,
                                 const std::vector<DifferencePanel>& panels) {
  return DifferenceChart(unit, most, panels).draw(title, panels);
}

}}  // namespace plumb::traces
