#include "traces/draw/draw_svg.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "traces/draw/svg_style.h"
#include "traces/draw/time_text.h"
#include "traces/statistics.h"

namespace plumb { inline namespace traces {
namespace {

constexpr double kWidth = 1000;
constexpr double kLeft = 70;
constexpr double kRight = 16;
constexpr double kRowHeight = 26;
constexpr double kRowGap = 4;
constexpr double kTitleHeight = 30;
constexpr double kAxisHeight = 34;
constexpr double kLegendHeight = 34;
constexpr double kDigitWidth = 6.4;
constexpr int kTicks = 6;

/// The time from the first start to the last end of compute.
struct Extent {
  SimTime start = SimTime::max();
  SimTime end{0};
};

Extent compute_extent(const Timeline& timeline) {
  Extent extent;
  for (const RankTimeline& rank : timeline.ranks) {
    for (const Span& span : rank.spans) {
      if (span.stream != Stream::kCompute) continue;
      extent.start = std::min(extent.start, span.start);
      extent.end = std::max(extent.end, span.end);
    }
  }
  if (extent.start > extent.end) extent.start = extent.end;
  return extent;
}

/// Returns [stage] its place among its rank's stages: 0 for the first.
std::vector<int> chunk_of_stages(const Timeline& timeline) {
  std::map<int, int> seen;
  std::vector<int> chunks;
  for (const StagePlace& place : timeline.stages) chunks.push_back(seen[place.rank]++);
  return chunks;
}

/// Returns 1, 2 or 5 times a power of ten, about `total` / kTicks.
double tick_step(double total) {
  if (total <= 0) return 1;
  const double rough = total / kTicks;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

class Picture {
 public:
  explicit Picture(const std::vector<Timeline>& panels) {
    for (const Timeline& panel : panels) {
      const Extent extent = compute_extent(panel);
      longest_ = std::max(longest_, extent.end - extent.start);
    }
  }

  std::string draw(const std::vector<Timeline>& panels) {
    for (const Timeline& panel : panels) draw_panel(panel);
    draw_axis();
    draw_legend(panels);
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {:.0f}\" font-family=\"Helvetica, Arial, "
               "sans-serif\" "
               "font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
               kWidth, y_) +
           body_ + "</svg>\n";
  }

 private:
  double x_of(SimTime time) const {
    const double share =
        longest_.count() == 0 ? 0 : static_cast<double>(time.count()) / static_cast<double>(longest_.count());
    return kLeft + share * (kWidth - kLeft - kRight);
  }

  void draw_panel(const Timeline& timeline) {
    const Statistics statistics = statistics_of(timeline);
    const Extent extent = compute_extent(timeline);
    const std::vector<int> chunks = chunk_of_stages(timeline);
    body_ += fmt::format(
        "<text x=\"{}\" y=\"{:.1f}\" font-size=\"13\" fill=\"#222222\"><tspan font-weight=\"bold\">{}</tspan> {}: {}, "
        "bubble {:.1f} %</text>\n",
        kLeft, y_ + 20, timeline.source == Timeline::Source::kPredicted ? "predicted" : "measured",
        escaped(timeline.title), time_text(extent.end - extent.start), 100 * statistics.bubble_ratio);
    y_ += kTitleHeight;
    for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
      body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#444444\">rank {}</text>\n",
                           kLeft - 8, y_ + kRowHeight / 2 + 4, r);
      body_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"#f1f1f1\"/>\n", kLeft,
                           y_, x_of(extent.end - extent.start) - kLeft, kRowHeight);
      for (const Span& span : timeline.ranks[r].spans) {
        if (span.stream == Stream::kCompute) draw_span(span, extent.start, chunks);
      }
      y_ += kRowHeight + kRowGap;
    }
  }

  void draw_span(const Span& span, SimTime origin, const std::vector<int>& chunks) {
    const double left = x_of(span.start - origin);
    const double width = x_of(span.end - origin) - left;
    if (width <= 0) return;
    const double opacity = std::max(0.45, 1.0 - 0.18 * chunks[span.action.stage]);
    body_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" fill-opacity=\"{:.2f}\" "
        "stroke=\"#ffffff\" "
        "stroke-width=\"{}\"><title>{} {}</title></rect>\n",
        left, y_, width, kRowHeight, color_of(span.action.op), opacity, width > 3 ? 0.8 : 0, to_text(span.action),
        time_text(span.end - span.start));
    const std::string label = span.action.microbatch >= 0 ? std::to_string(span.action.microbatch) : "";
    if (!label.empty() && width > kDigitWidth * static_cast<double>(label.size()) + 4) {
      body_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#ffffff\">{}</text>\n",
                           left + width / 2, y_ + kRowHeight / 2 + 4, label);
    }
  }

  void draw_axis() {
    y_ += 4;
    const double total = to_seconds(longest_).count();
    const double step = tick_step(total);
    for (int i = 0; i * step <= total * (1 + 1e-9) && total > 0; ++i) {
      const SimTime at = to_sim_time(Seconds{i * step});
      body_ += fmt::format("<line x1=\"{0:.2f}\" x2=\"{0:.2f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"#999999\"/>\n",
                           x_of(at), y_, y_ + 5);
      body_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#444444\">{}</text>\n",
                           x_of(at), y_ + 18, i == 0 ? "0" : time_text(at));
    }
    y_ += kAxisHeight - 4;
  }

  void draw_legend(const std::vector<Timeline>& panels) {
    double x = kLeft;
    for (const OpColor& entry : kOpColors) {
      const bool used = std::ranges::any_of(panels, [&entry](const Timeline& panel) {
        return statistics_of(panel).ops[static_cast<std::size_t>(entry.op)].count > 0;
      });
      if (!used) continue;
      body_ +=
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" fill=\"{}\"/>\n", x, y_, entry.color);
      body_ +=
          fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#222222\">{}</text>\n", x + 20, y_ + 11, entry.label);
      x += 44 + kDigitWidth * static_cast<double>(entry.label.size());
    }
    y_ += kLegendHeight;
  }

  SimTime longest_{0};
  double y_ = 0;
  std::string body_;
};

}  // namespace

std::string draw_svg(const std::vector<Timeline>& panels) {
  return Picture(panels).draw(panels);
}

}}  // namespace plumb::traces
