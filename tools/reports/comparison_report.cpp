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
