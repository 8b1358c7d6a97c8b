#include "tools/reports/curve_report.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tools/reports/table.h"
#include "traces/draw/line_chart.h"
#include "traces/draw/time_text.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

double memory_number(const CurveAnswer& answer, std::int64_t memory) {
  return static_cast<double>(memory) /
         (answer.activation_units > 0 ? static_cast<double>(answer.activation_units) : kBytesPerGib);
}

std::string memory_text(const CurveAnswer& answer, std::int64_t memory) {
  if (answer.activation_units == 0) return bytes_text(static_cast<double>(memory));
  return fmt::format("{:.4g}", memory_number(answer, memory));
}

std::string_view memory_head(const CurveAnswer& answer) {
  return answer.activation_units > 0 ? "activations" : "activation memory";
}

std::string share_text(double share) {
  return fmt::format("{:.2f} %", 100 * share);
}

double ratio(std::int64_t time, std::int64_t to) {
  return static_cast<double>(time) / static_cast<double>(to);
}

double in_seconds(std::int64_t time) {
  return to_seconds(SimTime{time}).count();
}

std::vector<std::string> robustness_cells(const Robustness& robust) {
  return {share_text(robust.noise_ratio - 1),
          fmt::format("{} (rank {})", share_text(robust.slow_ratio - 1), robust.slow_rank)};
}

ordered_json robustness_json(const Robustness& robust) {
  return {{"noise_ratio", robust.noise_ratio}, {"slow_rank_ratio", robust.slow_ratio}, {"slow_rank", robust.slow_rank}};
}

/// A place on the chart, and the schedules that are there.
struct NamedPlace {
  std::int64_t memory = 0;
  std::int64_t time = 0;
  std::string names;
};

std::vector<NamedPlace> places_of_schedules(const CurveAnswer& answer) {
  const bool alike = std::ranges::all_of(
      answer.placements, [&](const std::string& placement) { return placement == answer.placements.front(); });
  std::vector<NamedPlace> places;
  for (const GeneratorLoss& loss : answer.losses) {
    const std::string name =
        alike ? loss.order.name : fmt::format("{} ({})", loss.order.name, answer.placements[loss.question]);
    const auto found = std::ranges::find_if(
        places, [&](const NamedPlace& place) { return place.memory == loss.peak_bytes && place.time == loss.time; });
    if (found == places.end()) {
      places.push_back({.memory = loss.peak_bytes, .time = loss.time, .names = name});
    } else {
      found->names += ", " + name;
    }
  }
  return places;
}

}  // namespace

std::string curve_text(const CurveAnswer& answer) {
  const std::string what(objective_name(answer.objective));
  const std::string memory(memory_head(answer));
  TextTable best{.head = {memory, what, "at most above the best", "placement", "what binds", "with 5 % noise",
                          "with a rank 10 % slow"}};
  for (std::size_t i = 0; i < answer.points.size(); ++i) {
    const CurvePoint& point = answer.points[i];
    best.rows.push_back({memory_text(answer, point.limit_bytes), time_text(SimTime{point.found.time}),
                         share_text(ratio(point.found.time, point.found.bound.time) - 1),
                         answer.placements[point.question], point.found.bound.reason});
    for (std::string& cell : robustness_cells(answer.points_robustness[i])) best.rows.back().push_back(std::move(cell));
  }
  TextTable known{.head = {"schedule", "placement", memory, what, "best found", "loses", "with 5 % noise",
                           "with a rank 10 % slow"}};
  for (std::size_t i = 0; i < answer.losses.size(); ++i) {
    const GeneratorLoss& loss = answer.losses[i];
    known.rows.push_back({loss.order.name, answer.placements[loss.question], memory_text(answer, loss.peak_bytes),
                          time_text(SimTime{loss.time}), time_text(SimTime{loss.best_time}),
                          share_text(ratio(loss.time, loss.best_time) - 1)});
    for (std::string& cell : robustness_cells(answer.losses_robustness[i]))
      known.rows.back().push_back(std::move(cell));
  }
  return fmt::format(
      "the best order found within each memory of a rank, on its placement\n{}\n"
      "the schedules of the catalogue, and the best order found within the memory of each\n{}",
      to_text(best), to_text(known));
}

ordered_json curve_json(const CurveAnswer& answer) {
  const char* key = answer.activation_units > 0 ? "activations" : "memory_gib";
  ordered_json document{{"objective", objective_name(answer.objective)},
                        {"points", ordered_json::array()},
                        {"schedules", ordered_json::array()}};
  for (std::size_t i = 0; i < answer.points.size(); ++i) {
    const CurvePoint& point = answer.points[i];
    document["points"].push_back({{key, memory_number(answer, point.limit_bytes)},
                                  {"time_s", in_seconds(point.found.time)},
                                  {"bound_s", in_seconds(point.found.bound.time)},
                                  {"bound_reason", point.found.bound.reason},
                                  {"placement", answer.placements[point.question]},
                                  {"robustness", robustness_json(answer.points_robustness[i])}});
  }
  for (std::size_t i = 0; i < answer.losses.size(); ++i) {
    const GeneratorLoss& loss = answer.losses[i];
    document["schedules"].push_back({{"name", loss.order.name},
                                     {"placement", answer.placements[loss.question]},
                                     {key, memory_number(answer, loss.peak_bytes)},
                                     {"time_s", in_seconds(loss.time)},
                                     {"best_found_s", in_seconds(loss.best_time)},
                                     {"robustness", robustness_json(answer.losses_robustness[i])}});
  }
  return document;
}

std::string curve_svg(const CurveAnswer& answer) {
  std::set<std::int64_t> memories;
  for (const CurvePoint& point : answer.points) memories.insert(point.limit_bytes);
  for (const GeneratorLoss& loss : answer.losses) memories.insert(loss.peak_bytes);
  LineChart chart{.title = fmt::format("{} against memory", objective_name(answer.objective)),
                  .x_label = answer.activation_units > 0 ? "activations of a rank" : "activation memory of a rank, GiB",
                  .y_label = fmt::format("{}, s", objective_name(answer.objective))};
  for (const std::int64_t memory : memories) {
    chart.x_values.push_back(fmt::format("{:.4g}", memory_number(answer, memory)));
  }
  LineSeries found{.name = "best found"};
  LineSeries bound{.name = "bound"};
  const CurvePoint* last = nullptr;  // what fits a memory fits a larger one
  std::size_t next = 0;
  for (const std::int64_t memory : memories) {
    while (next < answer.points.size() && answer.points[next].limit_bytes <= memory) last = &answer.points[next++];
    // A bound within some memory is one within a smaller memory, too.
    const auto bounded =
        std::ranges::find_if(answer.points, [memory](const CurvePoint& point) { return point.limit_bytes >= memory; });
    found.y.push_back(last == nullptr ? std::nullopt : std::optional(in_seconds(last->found.time)));
    bound.y.push_back(bounded == answer.points.end() ? std::nullopt
                                                     : std::optional(in_seconds(bounded->found.bound.time)));
  }
  chart.series = {std::move(found), std::move(bound)};
  for (NamedPlace& place : places_of_schedules(answer)) {
    LineSeries series{.name = std::move(place.names)};
    for (const std::int64_t memory : memories) {
      series.y.push_back(memory == place.memory ? std::optional(in_seconds(place.time)) : std::nullopt);
    }
    chart.series.push_back(std::move(series));
  }
  return line_chart_svg(chart);
}

}}  // namespace plumb::tools
