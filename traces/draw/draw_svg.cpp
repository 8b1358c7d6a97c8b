#include "traces/draw/draw_svg.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>

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
constexpr double kFontSize = 11;
constexpr double kSmallestFont = 6;
constexpr std::string_view kHatching =
    "<defs><pattern id=\"idle\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#f7f7f7\"/><line x1=\"0\" x2=\"0\" "
    "y1=\"0\" y2=\"6\" stroke=\"#d0d0d0\" stroke-width=\"1.5\"/></pattern></defs>\n";

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

/// Returns the compute spans of a rank that last.
std::vector<Span> lasting_spans(const RankTimeline& rank) {
  std::vector<Span> spans;
  std::ranges::copy_if(rank.spans, std::back_inserter(spans),
                       [](const Span& span) { return span.stream == Stream::kCompute && span.end > span.start; });
  return spans;
}

/// True if the span and the next one are an overlapped pair.
bool is_pair(const std::vector<Span>& spans, std::size_t i) {
  return i + 1 < spans.size() && spans[i].action.overlaps_next && spans[i].start == spans[i + 1].start;
}

/// Returns the colour, mixed with the more white the later the chunk; those behind the fourth are alike.
std::string shade_of(std::string_view color, int chunk) {
  const double share = std::max(0.45, 1.0 - 0.18 * chunk);
  std::string shade = "#";
  for (std::size_t at = 1; at < color.size(); at += 2) {
    const int part = std::stoi(std::string(color.substr(at, 2)), nullptr, 16);
    shade += fmt::format("{:02x}", static_cast<int>(std::lround(255 - share * (255 - part))));
  }
  return shade;
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
               "font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}",
               kWidth, y_, kHatching) +
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
      body_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"url(#idle)\"/>\n",
                           kLeft, y_, x_of(extent.end - extent.start) - kLeft, kRowHeight);
      const std::vector<Span> spans = lasting_spans(timeline.ranks[r]);
      for (std::size_t i = 0; i < spans.size(); ++i) {
        if (!is_pair(spans, i)) {
          draw_span(spans[i], extent.start, chunks, {.top = y_, .height = kRowHeight});
          continue;
        }
        has_pairs_ = true;
        draw_span(spans[i], extent.start, chunks, {.top = y_, .height = kRowHeight / 2});
        draw_span(spans[++i], extent.start, chunks, {.top = y_ + kRowHeight / 2, .height = kRowHeight / 2});
      }
      y_ += kRowHeight + kRowGap;
    }
  }

  /// The part of a row that a box takes.
  struct Strip {
    double top = 0;
    double height = 0;
  };

  void draw_span(const Span& span, SimTime origin, const std::vector<int>& chunks, const Strip& strip) {
    const double left = x_of(span.start - origin);
    const double width = x_of(span.end - origin) - left;
    const int chunk = chunks[span.action.stage];
    chunks_ = std::max(chunks_, chunk + 1);
    const std::string color = shade_of(color_of(span.action.op), chunk);
    body_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" stroke=\"#ffffff\" "
        "stroke-width=\"{}\"><title>{} {}</title></rect>\n",
        left, strip.top, width, strip.height, color, width > 3 ? 0.8 : 0, to_text(span.action),
        time_text(span.end - span.start));
    if (span.action.microbatch < 0) return;
    const std::string label = std::to_string(span.action.microbatch);
    const double of_width = (width - 2) / (kDigitWidth / kFontSize * static_cast<double>(label.size()));
    const double size = std::min({kFontSize, of_width, strip.height - 2});
    if (size < kSmallestFont) return;
    body_ += fmt::format(
        "<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-size=\"{:.1f}\" fill=\"{}\">{}</text>\n",
        left + width / 2, strip.top + strip.height / 2 + 0.36 * size, size, ink_on(color), label);
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
    const auto add = [&](std::string_view fill, std::string_view label) {
      body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"14\" fill=\"{}\"/>\n", x, y_, fill);
      body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#222222\">{}</text>\n", x + 20, y_ + 11, label);
      x += 38 + 5.8 * static_cast<double>(label.size());
    };
    std::string_view first;
    for (const OpColor& entry : kOpColors) {
      const bool used = std::ranges::any_of(panels, [&entry](const Timeline& panel) {
        return std::ranges::any_of(panel.ranks, [&entry](const RankTimeline& rank) {
          return std::ranges::any_of(lasting_spans(rank), [&](const Span& span) { return span.action.op == entry.op; });
        });
      });
      if (!used) continue;
      add(entry.color, entry.label);
      if (first.empty()) first = entry.color;
    }
    for (int chunk = 1; chunk < std::min(chunks_, 4) && !first.empty(); ++chunk)
      add(shade_of(first, chunk), fmt::format("chunk {}{}", chunk, chunk == 3 && chunks_ > 4 ? " and later" : ""));
    if (has_pairs_) {
      const double x_of_pair = x;
      add(color_of(Op::kForward), "overlapped pair");
      body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"7\" fill=\"{}\"/>\n", x_of_pair,
                           y_ + 7, color_of(Op::kBackward));
    }
    if (longest_ > SimTime{0}) add("url(#idle)", "idle");
    y_ += kLegendHeight;
  }

  SimTime longest_{0};
  double y_ = 0;
  int chunks_ = 1;          ///< the most of a rank that was drawn
  bool has_pairs_ = false;  ///< that were drawn
  std::string body_;
};

}  // namespace

std::string draw_svg(const std::vector<Timeline>& panels) {
  return Picture(panels).draw(panels);
}

}}  // namespace plumb::traces
