#pragma once
// An answer as one page of HTML that asks nothing of a network: blocks one below the other, drawn by the scripts beside
// this file, which the build puts into the binary.
//
//   Page page{.title = "llama-3-8b on h100:16"};
//   add_verdict(page, "step time 6.29 s", true);
//   add_timeline(page, "Timeline", simulation.timeline);   // timeline_block.h
//   write_file("answer.html", to_html(page));

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/reports/table.h"
#include "traces/draw/difference_chart.h"

namespace plumb { inline namespace tools {

struct Page {
  std::string title;
  nlohmann::ordered_json blocks = nlohmann::ordered_json::array();
};

/// A kind of thing that a chart tells apart.
struct ChartKind {
  std::string name;
  std::string color;  ///< as CSS has it; empty: one of the chart's own
};

/// One bar of a chart, with a value for each of its kinds.
struct Bar {
  std::string name;
  std::vector<double> values;
};

/// The quantity of an axis or of bars. `unit`: "s", "B" for bytes, or what stands behind a number.
struct AxisQuantity {
  std::string name;
  std::string unit;
  std::vector<std::string> names;  ///< what stands at 0, 1, ... where the values are no numbers; empty: they are
  double limit = 0;                ///< a line across the axis if it is above 0
  bool logarithmic = false;
};

struct PointSeries {
  std::string name;
  std::string color;  ///< as of ChartKind
  struct Point {
    double x = 0;
    double y = 0;
    std::string label;  ///< shown for the point under the pointer
  };
  std::vector<Point> points;
  bool joined = false;  ///< by a line
};

/// Adds a block that a script draws by its kind. The functions below make such blocks; those without content are left
/// out.
void add_block(Page& page, const char* kind, const std::string& title, nlohmann::ordered_json block);

/// The sentence that the page begins with; `holds` is false for bad news.
void add_verdict(Page& page, std::string_view text, bool holds);
void add_note(Page& page, std::string_view text);
void add_command(Page& page, const std::string& title, std::string_view text);
void add_table(Page& page, const std::string& title, const TextTable& table);

/// Bars of stacked values; `limit` is drawn across them if it is above 0.
void add_bars(Page& page, const std::string& title, const std::vector<ChartKind>& kinds, const std::vector<Bar>& bars,
              const std::string& unit, double limit = 0);
void add_points(Page& page, const std::string& title, const AxisQuantity& x, const AxisQuantity& y,
                const std::vector<PointSeries>& series);

/// Bars to both sides of 0, with their ranges across them. `unit` as of AxisQuantity.
void add_differences(Page& page, const std::string& title, const std::string& unit,
                     const std::vector<Difference>& differences);

std::string to_html(const Page& page);

}}  // namespace plumb::tools
