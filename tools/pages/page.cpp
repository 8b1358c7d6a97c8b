#include "tools/pages/page.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>

#include "tools/inputs/presets.h"
#include "traces/draw/svg_style.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// More than any chart of ours has kinds.
constexpr std::array<std::string_view, 14> kChartColors{"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b6992d",
                                                        "#76b7b2", "#9c755f", "#b07aa1", "#79706e", "#a0cbe8",
                                                        "#ffbe7d", "#8cd17d", "#ff9d9a", "#d4a6c8"};

ordered_json kind_json(const ChartKind& kind, std::size_t number) {
  return {{"name", kind.name},
          {"color", kind.color.empty() ? std::string(kChartColors[number % kChartColors.size()]) : kind.color}};
}

void add_block(Page& page, const char* kind, const std::string& title, ordered_json block) {
  block["kind"] = kind;
  if (!title.empty()) block["title"] = title;
  page.blocks.push_back(std::move(block));
}

/// Returns the bytes of the values, in the order of this machine, as base64.
template <typename Value>
std::string base64(const std::vector<Value>& values) {
  using namespace boost::archive::iterators;
  const auto* first = reinterpret_cast<const char*>(values.data());
  std::string bytes(first, values.size() * sizeof(Value));
  const std::size_t missing = (3 - bytes.size() % 3) % 3;
  bytes.append(missing, '\0');
  using Letters = base64_from_binary<transform_width<std::string::const_iterator, 6, 8>>;
  std::string text(Letters(bytes.cbegin()), Letters(bytes.cend()));
  std::fill_n(text.rbegin(), missing, '=');
  return text;
}

/// The slices of a lane, as arrays.
struct Lane {
  std::string name;
  std::vector<double> start, end;  ///< seconds
  std::vector<std::uint8_t> kind;  ///< [Op]
  std::vector<std::uint16_t> stage;
  std::vector<std::int32_t> microbatch;
};

void add_span(Lane& lane, const Span& span) {
  lane.start.push_back(to_seconds(span.start).count());
  lane.end.push_back(to_seconds(span.end).count());
  lane.kind.push_back(static_cast<std::uint8_t>(span.action.op));
  lane.stage.push_back(static_cast<std::uint16_t>(span.action.stage));
  lane.microbatch.push_back(span.action.microbatch);
}

/// Returns lanes in which no two slices overlap, for the spans that are taken.
template <typename Take>
std::vector<Lane> lanes_of(const RankTimeline& rank, const std::string& name, const Take& take) {
  std::vector<const Span*> spans;
  for (const Span& span : rank.spans)
    if (take(span) && span.end > span.start) spans.push_back(&span);
  std::ranges::stable_sort(spans, {}, &Span::start);
  std::vector<Lane> lanes;
  std::vector<SimTime> ends;
  for (const Span* span : spans) {
    std::size_t lane = 0;
    while (lane < ends.size() && ends[lane] > span->start) ++lane;
    if (lane == ends.size()) {
      lanes.push_back({.name = lane == 0 ? name : ""});
      ends.emplace_back();
    }
    add_span(lanes[lane], *span);
    ends[lane] = span->end;
  }
  return lanes;
}

ordered_json lane_json(const Lane& lane) {
  return {{"name", lane.name},         {"start", base64(lane.start)}, {"end", base64(lane.end)},
          {"kind", base64(lane.kind)}, {"stage", base64(lane.stage)}, {"microbatch", base64(lane.microbatch)}};
}

std::string_view part_of_page(std::string_view name) {
  return std::ranges::find_if(
             presets(), [&](const Preset& preset) { return preset.kind == Preset::Kind::kPage && preset.name == name; })
      ->text;
}

}  // namespace

void add_verdict(Page& page, std::string_view text, bool holds) {
  add_block(page, "verdict", "", {{"text", text}, {"bad", !holds}});
}

void add_note(Page& page, std::string_view text) {
  add_block(page, "note", "", {{"text", text}});
}

void add_command(Page& page, const std::string& title, std::string_view text) {
  add_block(page, "command", title, {{"text", text}});
}

void add_table(Page& page, const std::string& title, const TextTable& table) {
  add_block(page, "table", title, {{"head", table.head}, {"rows", table.rows}});
}

void add_timeline(Page& page, const std::string& title, const Timeline& timeline) {
  ordered_json lanes = ordered_json::array(), kinds = ordered_json::array(), stages = ordered_json::array();
  SimTime end{0};
  std::array<bool, kOpCount> used{};  ///< [Op] some slice is of it
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const auto computes = [](const Span& span) { return span.stream == Stream::kCompute; };
    for (const Lane& lane : lanes_of(timeline.ranks[rank], fmt::format("rank {}", rank), computes))
      lanes.push_back(lane_json(lane));
    for (const Stream stream : {Stream::kSend, Stream::kCollective}) {
      const auto moves = [stream](const Span& span) { return span.stream == stream; };
      for (const Lane& lane : lanes_of(timeline.ranks[rank], std::string(stream_name(stream)), moves))
        lanes.push_back(lane_json(lane));
    }
    for (const Span& span : timeline.ranks[rank].spans) {
      end = std::max(end, span.end);
      used[static_cast<std::size_t>(span.action.op)] |= span.stream != Stream::kReceive && span.end > span.start;
    }
  }
  for (int op = 0; op < kOpCount; ++op) {
    kinds.push_back({{"name", op_name(static_cast<Op>(op))},
                     {"color", color_of(static_cast<Op>(op))},
                     {"used", used[static_cast<std::size_t>(op)]}});
  }
  for (std::size_t stage = 0; stage < timeline.stages.size(); ++stage)
    stages.push_back(stage_name(timeline, static_cast<int>(stage)));
  add_block(page, "timeline", title,
            {{"end", to_seconds(end).count()}, {"kinds", kinds}, {"stages", stages}, {"lanes", lanes}});
}

void add_bars(Page& page, const std::string& title, const std::vector<ChartKind>& kinds, const std::vector<Bar>& bars,
              const std::string& unit, double limit) {
  ordered_json of_kinds = ordered_json::array(), of_bars = ordered_json::array();
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    of_kinds.push_back(kind_json(kinds[kind], kind));
    of_kinds.back()["used"] = std::ranges::any_of(bars, [&](const Bar& bar) { return bar.values[kind] > 0; });
  }
  for (const Bar& bar : bars) of_bars.push_back({{"name", bar.name}, {"values", bar.values}});
  add_block(page, "bars", title, {{"unit", unit}, {"limit", limit}, {"kinds", of_kinds}, {"bars", of_bars}});
}

void add_points(Page& page, const std::string& title, const AxisQuantity& x, const AxisQuantity& y,
                const std::vector<PointSeries>& series) {
  ordered_json of_series = ordered_json::array();
  for (const PointSeries& one : series) {
    ordered_json json = kind_json({.name = one.name}, of_series.size());
    json["line"] = one.joined;
    json["points"] = ordered_json::array();
    for (const PointSeries::Point& point : one.points)
      json["points"].push_back({{"x", point.x}, {"y", point.y}, {"label", point.label}});
    of_series.push_back(std::move(json));
  }
  add_block(page, "points", title,
            {{"x", {{"name", x.name}, {"unit", x.unit}}},
             {"y", {{"name", y.name}, {"unit", y.unit}}},
             {"series", of_series}});
}

std::string to_html(const Page& page) {
  std::string data = ordered_json{{"title", page.title}, {"blocks", page.blocks}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (std::size_t at = data.find("</"); at != std::string::npos; at = data.find("</", at + 3))
    data.insert(at + 1, "\\");
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<link rel=\"icon\" href=\"data:,\">\n"
      "<style>\n{}</style>\n</head>\n<body>\n<script id=\"data\" type=\"application/json\">{}</script>\n"
      "<script>\n{}{}{}</script>\n</body>\n</html>\n",
      escaped(page.title), part_of_page("page.css"), data, part_of_page("charts.js"), part_of_page("timeline.js"),
      part_of_page("page.js"));
}

}}  // namespace plumb::tools
