#include "tools/pages/page.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tools/inputs/presets.h"
#include "traces/draw/svg_style.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

ordered_json kind_json(const ChartKind& kind, std::size_t number) {
  return {{"name", kind.name},
          {"color", kind.color.empty() ? std::string(kChartColors[number % kChartColors.size()]) : kind.color}};
}

std::string_view part_of_page(std::string_view name) {
  return std::ranges::find_if(
             presets(), [&](const Preset& preset) { return preset.kind == Preset::Kind::kPage && preset.name == name; })
      ->text;
}

}  // namespace

void add_block(Page& page, const char* kind, const std::string& title, ordered_json block) {
  block["kind"] = kind;
  if (!title.empty()) block["title"] = title;
  page.blocks.push_back(std::move(block));
}

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
  if (table.rows.empty()) return;
  add_block(page, "table", title, {{"head", table.head}, {"rows", table.rows}});
}

void add_bars(Page& page, const std::string& title, const std::vector<ChartKind>& kinds, const std::vector<Bar>& bars,
              const std::string& unit, double limit) {
  if (bars.empty()) return;
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
    if (one.points.empty()) continue;
    ordered_json json = kind_json({.name = one.name, .color = one.color}, of_series.size());
    json["line"] = one.joined;
    json["points"] = ordered_json::array();
    for (const PointSeries::Point& point : one.points)
      json["points"].push_back({{"x", point.x}, {"y", point.y}, {"label", point.label}});
    of_series.push_back(std::move(json));
  }
  const auto axis = [](const AxisQuantity& of) {
    return ordered_json{
        {"name", of.name}, {"unit", of.unit}, {"names", of.names}, {"limit", of.limit}, {"log", of.logarithmic}};
  };
  add_block(page, "points", title, {{"x", axis(x)}, {"y", axis(y)}, {"series", of_series}});
}

void add_differences(Page& page, const std::string& title, const std::string& unit,
                     const std::vector<Difference>& differences) {
  if (differences.empty()) return;
  ordered_json bars = ordered_json::array();
  for (const Difference& one : differences) {
    ordered_json& bar = bars.emplace_back(ordered_json{{"name", one.name}, {"value", one.value}, {"label", one.label}});
    bar["low"] = one.range ? ordered_json(one.range->first) : ordered_json(nullptr);
    bar["high"] = one.range ? ordered_json(one.range->second) : ordered_json(nullptr);
  }
  add_block(page, "differences", title, {{"unit", unit}, {"bars", bars}});
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
