#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "traces/compare/compare.h"
#include "traces/draw/time_text.h"

namespace plumb { inline namespace traces {
namespace {

std::string percent(double ratio) {
  return fmt::format("{:+.1f} %", 100 * ratio);
}

std::string difference_text(const ComparedTime& time) {
  const SimTime difference = time.measured - time.predicted;
  return (difference > SimTime{0} ? "+" : "") + time_text(difference);
}

std::string memory_text(std::int64_t bytes) {
  constexpr std::array<std::pair<double, std::string_view>, 3> kUnits = {
      {{1024.0 * 1024 * 1024, "GiB"}, {1024.0 * 1024, "MiB"}, {1024.0, "KiB"}}};
  if (bytes == 0) return "-";
  for (const auto& [unit, name] : kUnits) {
    if (static_cast<double>(bytes) >= unit) return fmt::format("{:.4g} {}", static_cast<double>(bytes) / unit, name);
  }
  return fmt::format("{} B", bytes);
}

}  // namespace

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
  std::string text = fmt::format("{:<30}{:>12}{:>12}{:>10}\n", timeline.title, "predicted", "measured", "error");
  const ComparedTime& step = comparison.step;
  text += fmt::format("{:<30}{:>12}{:>12}{:>10}\n", "step", time_text(step.predicted), time_text(step.measured),
                      percent(error_ratio(step)));
  const auto bubble = [&](const char* name, double predicted, double measured) {
    text += fmt::format("{:<30}{:>10.1f} %{:>10.1f} %{:>10}\n", name, 100 * predicted, 100 * measured,
                        fmt::format("{:+.1f} pp", 100 * (predicted - measured)));
  };
  bubble("bubble", comparison.predicted_bubble_ratio, comparison.measured_bubble_ratio);
  bubble("bubble within spans", comparison.predicted_span_bubble_ratio, comparison.measured_span_bubble_ratio);
  if (comparison.steps > 1) {
    text += fmt::format("measured: the median of {} steps of {} to {}\n", comparison.steps,
                        time_text(comparison.fastest_step), time_text(comparison.slowest_step));
  }

  text +=
      fmt::format("\n{:<30}{:>12}{:>12}{:>10}{:>8}\n", "operation (mean)", "predicted", "measured", "error", "count");
  for (const OpComparison& op : comparison.ops) {
    const std::string name = fmt::format("{}, {}", op_name(op.op), stage_name(timeline, op.stage));
    text += fmt::format("{:<30}{:>12}{:>12}{:>10}{:>8}\n", name, time_text(op.mean.predicted),
                        time_text(op.mean.measured), percent(error_ratio(op.mean)), op.count);
  }

  text += fmt::format("\n{:<6}{:>11}{:>11}{:>9}{:>11}{:>11}{:>11}{:>12}{:>11}\n", "rank", "busy pred.", "measured",
                      "error", "idle pred.", "measured", "overhead", "peak pred.", "measured");
  for (std::size_t r = 0; r < comparison.ranks.size(); ++r) {
    const RankComparison& rank = comparison.ranks[r];
    text += fmt::format("{:<6}{:>11}{:>11}{:>9}{:>11}{:>11}{:>11}{:>12}{:>11}\n", r, time_text(rank.busy.predicted),
                        time_text(rank.busy.measured), percent(error_ratio(rank.busy)), time_text(rank.idle.predicted),
                        time_text(rank.idle.measured), time_text(rank.overhead.measured),
                        memory_text(rank.predicted_peak_bytes), memory_text(rank.measured_peak_bytes));
  }

  text += fmt::format("\n{:<30}{:>12}{:>12}{:>12}\n", "along the critical path", "predicted", "measured", "difference");
  for (const ErrorCause& cause : comparison.causes) {
    if (cause.time == ComparedTime{}) continue;
    text += fmt::format("{:<30}{:>12}{:>12}{:>12}\n", cause_text(cause, timeline), time_text(cause.time.predicted),
                        time_text(cause.time.measured), difference_text(cause.time));
  }
  text += fmt::format("{:<30}{:>12}{:>12}{:>12}\n", "step", time_text(step.predicted), time_text(step.measured),
                      difference_text(step));
  return text;
}

}}  // namespace plumb::traces
