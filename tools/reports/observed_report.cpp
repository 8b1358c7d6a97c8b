#include "tools/reports/observed_report.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/reports/or_null.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kChangesShown = 3;

bool is_within(const PredictionInterval& interval, double measured) {
  return measured >= interval.low && measured <= interval.high;
}

std::string percent(double ratio) {
  return fmt::format("{:+.1f} %", 100 * ratio);
}

std::string quantities_text(const ObservedReport& report) {
  TextTable table{.head = {"quantity", "predicted", "measured", "error"}};
  const auto add = [&](const std::string& name, const PredictedAndMeasured& of, std::string (*text)(double)) {
    table.rows.push_back({name, text(of.predicted), text(of.measured), percent(error_ratio(of))});
  };
  add("step", report.compared.step, duration_text);
  if (report.compared.memory) add("memory of the fullest rank", *report.compared.memory, bytes_text);
  for (const ComparedPart& of : report.compared.parts) {
    const bool differs = of.least.measured != of.most.measured;
    add(of.name + (differs ? ", the most of a rank" : ""), of.most, duration_text);
    if (differs) add(of.name + ", the least of a rank", of.least, duration_text);
  }
  return to_text(table);
}

std::string figures_text(const ObservedReport& report) {
  if (report.figures.empty())
    return fmt::format("no figure of the cluster explains the step by itself within a factor of {}\n", kMostFactor);
  const bool timed = report.figures.front().left_over.has_value();
  TextTable table{.head = {"figure of the cluster", "times", "standard error"}};
  if (timed) table.head.emplace_back("parts of the step are then off by");
  for (const ExplainingFigure& by : report.figures) {
    table.rows.push_back({by.figure, fmt::format("{:.3g}", by.factor),
                          by.standard_error ? fmt::format("{:.2g}", *by.standard_error) : "not known"});
    if (timed) table.rows.back().push_back(fmt::format("{:.1f} %", 100 * std::expm1(by.left_over.value_or(0))));
  }
  return "each of these alone would make the predicted step the measured one:\n\n" + to_text(table);
}

std::string changes_text(const ObservedReport& report) {
  if (report.changes.empty()) return "no change of one axis of the layout is predicted to be faster\n";
  std::string text = "changes of one axis of the layout that are predicted to be faster:\n";
  for (std::size_t i = 0; i < std::min(kChangesShown, report.changes.size()); ++i) {
    const LayoutChange& change = report.changes[i];
    const double seconds = step_time(change.evaluation.simulation).count();
    text += fmt::format("  {}: {} ({})\n", change.change, duration_text(seconds),
                        percent(seconds / report.compared.step.predicted - 1));
  }
  return text;
}

ordered_json pair_json(const PredictedAndMeasured& of) {
  return {{"predicted", of.predicted}, {"measured", of.measured}, {"error_ratio", error_ratio(of)}};
}

}  // namespace

std::string verdict_text(const ObservedReport& report) {
  const PredictedAndMeasured& step = report.compared.step;
  const double error = error_ratio(step);
  const PredictionInterval& interval = report.intervals.step_time;
  const std::string place = fmt::format("{} the interval in which four of five runs lie, {} to {}",
                                        is_within(interval, step.measured) ? "in" : "outside",
                                        duration_text(interval.low), duration_text(interval.high));
  return fmt::format("the step took {} and was predicted to take {}, which is {:.1f} % too {}; it lies {}",
                     duration_text(step.measured), duration_text(step.predicted), 100 * std::abs(error),
                     error < 0 ? "short" : "long", place);
}

std::string to_text(const ObservedReport& report) {
  const MedianEstimate& step = report.run.step;
  const std::string spread =
      step.standard_error ? fmt::format(", known to {:.2g} %", 100 * *step.standard_error / step.value) : "";
  return verdict_text(report) + "\n" + report.plan + "; " + report.stack + "\n" +
         fmt::format("{}: the median of {} steps of {}{}\n", report.file, step.observations, report.run.framework,
                     spread) +
         fmt::format("\n{}\n{}\n{}", quantities_text(report), figures_text(report), changes_text(report));
}

ordered_json to_json(const ObservedReport& report) {
  const PredictionInterval& interval = report.intervals.step_time;
  ordered_json parts = ordered_json::array(), figures = ordered_json::array(), changes = ordered_json::array();
  for (const ComparedPart& of : report.compared.parts)
    parts.push_back({{"part", of.name}, {"least_s", pair_json(of.least)}, {"most_s", pair_json(of.most)}});
  for (const ExplainingFigure& by : report.figures)
    figures.push_back({{"figure", by.figure},
                       {"factor", by.factor},
                       {"standard_error", or_null(by.standard_error)},
                       {"left_over_log", or_null(by.left_over)}});
  for (const LayoutChange& change : report.changes)
    changes.push_back({{"change", change.change}, {"step_time_s", step_time(change.evaluation.simulation).count()}});
  ordered_json memory;
  if (report.compared.memory) memory = pair_json(*report.compared.memory);
  return {{"plan", report.plan + "; " + report.stack},
          {"file", report.file},
          {"framework", report.run.framework},
          {"steps", report.run.step.observations},
          {"step_s", pair_json(report.compared.step)},
          {"step_standard_error_s", or_null(report.run.step.standard_error)},
          {"step_time_interval_s", {interval.low, interval.high}},
          {"within_interval", is_within(interval, report.compared.step.measured)},
          {"memory_bytes", memory},
          {"parts", parts},
          {"explaining_figures", figures},
          {"faster_changes", changes}};
}

}}  // namespace plumb::tools
