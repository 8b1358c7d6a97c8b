#include "tools/reports/whatif_report.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/search/binding.h"
#include "planner/spec/short_layout.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/arguments.h"
#include "traces/draw/line_chart.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

std::string value_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : json_line(value);
}

/// Returns the values of all keys but one, as in "pp=4, mbs=1".
std::string other_values(const WhatIfRow& row, std::size_t key) {
  std::string text;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    if (i != key)
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", row.values[i].first, value_text(row.values[i].second));
  }
  return text;
}

/// Rows that differ in one key alone, by the values of the others.
std::map<std::string, std::vector<const WhatIfRow*>> alike_but(const std::vector<WhatIfRow>& rows, std::size_t key) {
  std::map<std::string, std::vector<const WhatIfRow*>> alike;
  for (const WhatIfRow& row : rows) alike[other_values(row, key)].push_back(&row);
  return alike;
}

/// Returns true if all rows that differ in that key alone have the same answer.
bool changes_nothing(const std::vector<WhatIfRow>& rows, std::size_t key) {
  return std::ranges::all_of(alike_but(rows, key), [](const auto& entry) {
    return std::ranges::all_of(entry.second, [&](const WhatIfRow* row) {
      const WhatIfRow& first = *entry.second.front();
      return row->prediction == first.prediction && row->infeasible == first.infeasible;
    });
  });
}

/// Returns the largest of the values from which on a key does not bind, over all values of the other keys; nothing if
/// with some of them it binds up to its last value, or its values are no numbers.
std::optional<double> unbound_from(const std::vector<WhatIfRow>& rows, std::size_t key) {
  std::optional<double> from;
  for (const auto& [others, alike] : alike_but(rows, key)) {
    std::vector<std::pair<double, double>> steps;
    for (const WhatIfRow* row : alike) {
      const nlohmann::json& value = row->values[key].second;
      if (!value.is_number()) return std::nullopt;
      if (row->prediction) steps.emplace_back(value.get<double>(), step_time(row->prediction->step).count());
    }
    const std::optional<double> here = planner::unbound_from(std::move(steps));
    if (!here) return std::nullopt;
    from = std::max(from.value_or(*here), *here);
  }
  return from;
}

/// True for a figure of the cluster of which more may help: no number of devices, latency or efficiency's absence.
bool is_resource(const std::string& key) {
  return key.starts_with("cluster.") && key != "cluster.devices" && key.find("latency") == std::string::npos;
}

}  // namespace

TextTable whatif_table(const std::vector<WhatIfRow>& rows, bool bare) {
  TextTable table;
  const bool stacks_differ = std::ranges::any_of(
      rows, [&](const WhatIfRow& row) { return row.prediction && row.stack != rows.front().stack; });
  for (const auto& [key, value] : rows.front().values) table.head.push_back(key);
  if (stacks_differ) table.head.emplace_back("framework");
  const std::vector<const char*> columns =
      bare ? std::vector{"layout",       "step_time_s",       "mfu",       "bubble_ratio",
                         "tokens_per_s", "peak_memory_bytes", "infeasible"}
           : std::vector{"layout", "step time", "four of five within", "MFU", "bubble", "tokens/s", "peak memory"};
  table.head.insert(table.head.end(), columns.begin(), columns.end());
  for (const WhatIfRow& row : rows) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const auto& [key, value] : row.values) cells.push_back(value_text(value));
    if (stacks_differ) cells.push_back(row.stack.empty() ? std::string(kOwnExecutor) : row.stack);
    cells.push_back(bare ? to_text(row.layout) : short_text(row.layout));
    if (!row.prediction) {
      cells.insert(cells.end(), bare ? 5 : 6, bare ? "" : "-");
    } else {
      const auto& [step, rates, intervals] = *row.prediction;
      const std::int64_t peak = *std::ranges::max_element(step.peak_memory_bytes);
      const double seconds = step_time(step).count();
      const auto number = [&](double value, const std::string& text) {
        return bare ? fmt::format("{:.9g}", value) : text;
      };
      cells.push_back(number(seconds, duration_text(seconds)));
      if (!bare) {
        cells.push_back(
            fmt::format("{} to {}", duration_text(intervals->step_time.low), duration_text(intervals->step_time.high)));
      }
      cells.push_back(number(rates.mfu_ratio, fmt::format("{:.1f} %", 100 * rates.mfu_ratio)));
      cells.push_back(number(step.bubble_ratio, fmt::format("{:.1f} %", 100 * step.bubble_ratio)));
      const bool in_tokens = rates.tokens_per_second > 0;
      const double rate = in_tokens ? rates.tokens_per_second : rates.samples_per_second;
      cells.push_back(number(rate, fmt::format("{:.0f}{}", rate, in_tokens ? "" : " samples/s")));
      cells.push_back(bare ? std::to_string(peak) : bytes_text(static_cast<double>(peak)));
    }
    if (bare) cells.push_back(row.infeasible);
  }
  return table;
}

ordered_json whatif_json(const std::vector<WhatIfRow>& rows) {
  ordered_json list = ordered_json::array();
  for (const WhatIfRow& row : rows) {
    ordered_json values = ordered_json::object();
    for (const auto& [key, value] : row.values) values[key] = value;
    list.push_back({{"values", values},
                    {"layout", to_json(row.layout)},
                    {"stack", row.stack.empty() ? ordered_json(nullptr) : ordered_json(row.stack)},
                    {"prediction", row.prediction ? to_json(*row.prediction) : ordered_json(nullptr)},
                    {"infeasible", row.infeasible.empty() ? ordered_json(nullptr) : ordered_json(row.infeasible)}});
  }
  return {{"rows", list}};
}

std::vector<std::string> infeasible_rows(const std::vector<WhatIfRow>& rows) {
  std::vector<std::pair<std::string, std::vector<const WhatIfRow*>>> by_reason;
  for (const WhatIfRow& row : rows) {
    if (row.infeasible.empty()) continue;
    const std::string layout = to_text(row.layout) + ": ";  // the table has it
    const std::string reason = row.infeasible.substr(row.infeasible.starts_with(layout) ? layout.size() : 0);
    auto found = std::ranges::find(by_reason, reason, [](const auto& entry) { return entry.first; });
    if (found == by_reason.end()) found = by_reason.insert(found, {reason, {}});
    found->second.push_back(&row);
  }
  std::vector<std::string> sentences;
  for (const auto& [reason, alike] : by_reason) {
    const std::size_t others = alike.size() - 1;
    sentences.push_back(
        fmt::format("infeasible with {}{}: {}", values_text(*alike.front()),
                    others == 0 ? "" : fmt::format(" and {} other row{}", others, others == 1 ? "" : "s"), reason));
  }
  return sentences;
}

std::string values_text(const WhatIfRow& row) {
  return other_values(row, row.values.size());
}

std::vector<SweepLine> sweep_lines(const std::vector<WhatIfRow>& rows) {
  const std::size_t key = rows.front().values.size() - 1;  // the last key changes fastest
  std::vector<SweepLine> lines;
  for (const WhatIfRow& row : rows) {
    const std::string name = other_values(row, key);
    if (lines.empty() || lines.back().name != name) lines.push_back({.name = name});
    lines.back().x_values.push_back(value_text(row.values[key].second));
    lines.back().rows.push_back(&row);
  }
  return lines;
}

std::string whatif_svg(const std::vector<WhatIfRow>& rows, const std::string& title) {
  const std::vector<SweepLine> lines = sweep_lines(rows);
  LineChart chart{.title = title,
                  .x_label = rows.front().values.back().first,
                  .y_label = "step time, s",
                  .x_values = lines.front().x_values};
  for (const SweepLine& line : lines) {
    auto& series = chart.series.emplace_back();
    series.name = line.name;
    for (const WhatIfRow* row : line.rows)
      series.y.push_back(row->prediction ? std::optional(step_time(row->prediction->step).count()) : std::nullopt);
  }
  return line_chart_svg(chart);
}

std::vector<std::string> idle_keys(const std::vector<WhatIfRow>& rows) {
  std::vector<std::string> sentences;
  for (std::size_t key = 0; key < rows.front().values.size(); ++key) {
    const std::string& name = rows.front().values[key].first;
    if (rows.front().values[key].second == rows.back().values[key].second) continue;
    const bool is_figure = is_resource(name);
    if (changes_nothing(rows, key)) {
      sentences.push_back(fmt::format("{} changes nothing here: the answer is the same for each of its values{}", name,
                                      is_figure ? ", so that it does not bind" : ""));
    } else if (const auto from = unbound_from(rows, key); is_figure && from) {
      sentences.push_back(fmt::format("{} does not bind from {:.6g} on: more of it changes the step by less than {} %",
                                      name, *from, 100 * kBindingShare));
    }
  }
  return sentences;
}

std::string break_even_text(const BreakEven& found, const Variation& two, const FigureRange& range) {
  const auto name = [&](std::size_t of) { return fmt::format("{}={}", two.key, value_text(two.values[of])); };
  std::string text;
  if (found.crossings.empty()) {
    text = fmt::format("{} is faster than {} at every {} from {:.6g} to {:.6g} that was tried\n",
                       name(found.faster_at_low), name(1 - found.faster_at_low), range.key, range.low, range.high);
  }
  for (const Crossing& crossing : found.crossings) {
    text += fmt::format("from {}={:.4g} on {} is faster than {}; at {:.4g} and below it is slower\n", range.key,
                        crossing.value, name(crossing.faster_above), name(crossing.faster_below), crossing.below);
  }
  return text + fmt::format(
                    "both were compared at {} values; where two neighbours have the same order, crossings that "
                    "come in pairs between them are not seen\n",
                    found.compared);
}

ordered_json break_even_json(const BreakEven& found, const Variation& two, const FigureRange& range) {
  ordered_json list = ordered_json::array();
  for (const Crossing& crossing : found.crossings) {
    list.push_back({{"below", crossing.below},
                    {"value", crossing.value},
                    {"faster_below", two.values[crossing.faster_below]},
                    {"faster_above", two.values[crossing.faster_above]}});
  }
  return {{"key", range.key},
          {"vary", two.key},
          {"compared", found.compared},
          {"faster_at_low", two.values[found.faster_at_low]},
          {"crossings", list}};
}

}}  // namespace plumb::tools
