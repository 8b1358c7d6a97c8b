#include "tools/reports/comparison_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/time.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

ordered_json time_json(const ComparedTime& time) {
  return {{"predicted_s", seconds(time.predicted)},
          {"measured_s", seconds(time.measured)},
          {"error_ratio", error_ratio(time)}};
}

ordered_json interval_json(const MedianInterval& interval) {
  return {{"low_s", seconds(interval.low)},
          {"high_s", seconds(interval.high)},
          {"confidence_ratio", interval.confidence_ratio}};
}

std::string_view cause_name(ErrorCause::Kind kind) {
  switch (kind) {
    case ErrorCause::Kind::kOperation:
      return "operation";
    case ErrorCause::Kind::kTransfer:
      return "transfer";
    case ErrorCause::Kind::kCollective:
      return "collective";
    case ErrorCause::Kind::kWaiting:
      return "waiting";
    case ErrorCause::Kind::kOverhead:
      return "overhead";
  }
  return "?";
}

std::string percent_text(double ratio) {
  return fmt::format("{:+.1f} %", 100 * ratio);
}

std::string time_cell(SimTime time) {
  return duration_text(seconds(time));
}

std::string bytes_cell(std::int64_t bytes) {
  return bytes == 0 ? "-" : bytes_text(static_cast<double>(bytes));
}

TextTable step_table(const Comparison& comparison, const std::string& title) {
  const ComparedTime& step = comparison.step;
  TextTable table{.head = {title, "predicted", "measured", "error"}};
  table.rows.push_back({"step", time_cell(step.predicted), time_cell(step.measured), percent_text(error_ratio(step))});
  const auto bubble = [&table](const char* name, double predicted, double measured) {
    table.rows.push_back({name, fmt::format("{:.1f} %", 100 * predicted), fmt::format("{:.1f} %", 100 * measured),
                          fmt::format("{:+.1f} pp", 100 * (predicted - measured))});
  };
  bubble("bubble", comparison.predicted_bubble_ratio, comparison.measured_bubble_ratio);
  bubble("bubble within spans", comparison.predicted_span_bubble_ratio, comparison.measured_span_bubble_ratio);
  return table;
}

TextTable operation_table(const Comparison& comparison, const Timeline& timeline) {
  TextTable table{.head = {"operation (mean)", "predicted", "measured", "error", "count"}};
  for (const OpComparison& op : comparison.ops)
    table.rows.push_back({fmt::format("{}, {}", op_name(op.op), stage_name(timeline, op.stage)),
                          time_cell(op.mean.predicted), time_cell(op.mean.measured), percent_text(error_ratio(op.mean)),
                          std::to_string(op.count)});
  return table;
}

TextTable rank_table(const Comparison& comparison) {
  TextTable table{.head = {"rank", "busy pred.", "measured", "error", "idle pred.", "measured", "overhead",
                           "peak pred.", "measured"}};
  for (std::size_t r = 0; r < comparison.ranks.size(); ++r) {
    const RankComparison& rank = comparison.ranks[r];
    table.rows.push_back({std::to_string(r), time_cell(rank.busy.predicted), time_cell(rank.busy.measured),
                          percent_text(error_ratio(rank.busy)), time_cell(rank.idle.predicted),
                          time_cell(rank.idle.measured), time_cell(rank.overhead.measured),
                          bytes_cell(rank.predicted_peak_bytes), bytes_cell(rank.measured_peak_bytes)});
  }
  return table;
}

TextTable cause_table(const Comparison& comparison, const Timeline& timeline) {
  TextTable table{.head = {"along the critical path", "predicted", "measured", "difference"}};
  const auto append = [&table](const std::string& name, const ComparedTime& time) {
    const SimTime difference = time.measured - time.predicted;
    table.rows.push_back({name, time_cell(time.predicted), time_cell(time.measured),
                          (difference > SimTime{0} ? "+" : "") + time_cell(difference)});
  };
  for (const ErrorCause& cause : comparison.causes)
    if (cause.time != ComparedTime{}) append(cause_text(cause, timeline), cause.time);
  append("step", comparison.step);
  return table;
}

/// Returns the row of the rank with the largest overhead: the time between compute actions in which nothing is awaited.
/// The replay loop itself and late waking by the system cause it.
std::vector<std::string> overhead_row(const Comparison& c) {
  const auto most =
      std::ranges::max_element(c.ranks, {}, [](const RankComparison& rank) { return rank.overhead.measured; });
  if (most == c.ranks.end()) return {"overhead"};
  return {fmt::format("overhead: the loop, late waking (rank {})", most - c.ranks.begin()),
          duration_text(seconds(most->overhead.predicted)), duration_text(seconds(most->overhead.measured)),
          fmt::format("{:.2f} % of the step", 100 * seconds(most->overhead.measured) / seconds(c.step.measured))};
}

}  // namespace

ordered_json comparison_json(const Comparison& c, const std::vector<double>& losses) {
  ordered_json ops = ordered_json::array();
  for (const OpComparison& op : c.ops) {
    ordered_json entry = {{"op", op_name(op.op)}, {"stage", op.stage}, {"count", op.count}};
    entry.update(time_json(op.mean));
    entry["measured_interval"] = interval_json(op.interval);
    ops.push_back(std::move(entry));
  }
  ordered_json ranks = ordered_json::array();
  for (std::size_t r = 0; r < c.ranks.size(); ++r) {
    ranks.push_back({{"rank", r},
                     {"busy", time_json(c.ranks[r].busy)},
                     {"idle", time_json(c.ranks[r].idle)},
                     {"overhead", time_json(c.ranks[r].overhead)},
                     {"predicted_peak_bytes", c.ranks[r].predicted_peak_bytes},
                     {"measured_peak_bytes", c.ranks[r].measured_peak_bytes}});
  }
  ordered_json causes = ordered_json::array();
  for (const ErrorCause& cause : c.causes) {
    ordered_json entry = {
        {"cause", cause_name(cause.kind)},
        {"op", cause.kind <= ErrorCause::Kind::kCollective ? ordered_json(op_name(cause.op)) : ordered_json(nullptr)},
        {"stage", cause.stage < 0 ? ordered_json(nullptr) : ordered_json(cause.stage)}};
    entry.update(time_json(cause.time));
    causes.push_back(std::move(entry));
  }
  return {
      {"steps", c.steps},
      {"step_time", time_json(c.step)},
      {"step_time_interval", interval_json(c.step_interval)},
      {"fastest_step_s", seconds(c.fastest_step)},
      {"slowest_step_s", seconds(c.slowest_step)},
      {"bubble_ratio", {{"predicted", c.predicted_bubble_ratio}, {"measured", c.measured_bubble_ratio}}},
      {"span_bubble_ratio", {{"predicted", c.predicted_span_bubble_ratio}, {"measured", c.measured_span_bubble_ratio}}},
      {"losses", losses.empty() ? ordered_json(nullptr) : ordered_json(losses)},
      {"ops", ops},
      {"ranks", ranks},
      {"causes", causes}};
}

std::string cause_text(const ErrorCause& cause, const Timeline& timeline) {
  switch (cause.kind) {
    case ErrorCause::Kind::kOperation:
      return fmt::format("{}, {}", op_name(cause.op), stage_name(timeline, cause.stage));
    case ErrorCause::Kind::kTransfer:
      return fmt::format("transfers, {}", op_name(cause.op));
    case ErrorCause::Kind::kCollective:
      return fmt::format("collectives, {}", op_name(cause.op));
    case ErrorCause::Kind::kWaiting:
      return "waiting for inputs";
    case ErrorCause::Kind::kOverhead:
      return "between actions";
  }
  return "?";
}

std::string to_text(const Comparison& comparison, const Timeline& timeline) {
  std::string text = to_text(step_table(comparison, timeline.title));
  if (comparison.steps > 1)
    text += fmt::format("measured: the median of {} steps of {} to {}\n", comparison.steps,
                        time_cell(comparison.fastest_step), time_cell(comparison.slowest_step));
  return fmt::format("{}\n{}\n{}\n{}", text, to_text(operation_table(comparison, timeline)),
                     to_text(rank_table(comparison)), to_text(cause_table(comparison, timeline)));
}

std::string summary_text(const Comparison& c, const std::vector<double>& losses) {
  const auto percent = [](double predicted, double measured) {
    return measured == 0 ? std::string("-") : fmt::format("{:+.1f} %", 100 * (predicted / measured - 1));
  };
  TextTable table{.head = {"", "predicted", "measured", "error"}};
  table.rows.push_back({fmt::format("step time (median of {})", c.steps), duration_text(seconds(c.step.predicted)),
                        duration_text(seconds(c.step.measured)), fmt::format("{:+.1f} %", 100 * error_ratio(c.step))});
  table.rows.push_back({fmt::format("  with {:.1f} % confidence", 100 * c.step_interval.confidence_ratio), "",
                        fmt::format("{} to {}", duration_text(seconds(c.step_interval.low)),
                                    duration_text(seconds(c.step_interval.high))),
                        fmt::format("{:+.1f} to {:+.1f} %", 100 * error_ratio({c.step.predicted, c.step_interval.high}),
                                    100 * error_ratio({c.step.predicted, c.step_interval.low}))});
  table.rows.push_back({"bubble (share of time that ranks idle)",
                        fmt::format("{:.1f} %", 100 * c.predicted_bubble_ratio),
                        fmt::format("{:.1f} %", 100 * c.measured_bubble_ratio),
                        fmt::format("{:+.1f} points", 100 * (c.predicted_bubble_ratio - c.measured_bubble_ratio))});
  table.rows.push_back(overhead_row(c));
  if (losses.empty()) return to_text(table);  // nothing was trained, so that no memory was measured
  for (std::size_t r = 0; r < c.ranks.size(); ++r) {
    const double predicted = static_cast<double>(c.ranks[r].predicted_peak_bytes);
    const double measured = static_cast<double>(c.ranks[r].measured_peak_bytes);
    table.rows.push_back({fmt::format("peak memory of rank {}", r), bytes_text(predicted), bytes_text(measured),
                          percent(predicted, measured)});
  }
  return to_text(table) +
         fmt::format("\nloss: {:.4f} before the first step, {:.4f} before the last\n", losses.front(), losses.back());
}

}}  // namespace plumb::tools
