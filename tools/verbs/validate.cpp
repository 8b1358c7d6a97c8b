#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/run.h"
#include "tools/console.h"
#include "tools/files.h"
#include "tools/lower_plan.h"
#include "tools/plan_input.h"
#include "tools/run_report.h"
#include "tools/table.h"
#include "tools/verbs/verbs.h"
#include "traces/chrome_trace.h"
#include "traces/compare.h"
#include "traces/draw_svg.h"
#include "traces/statistics.h"

namespace plumb {
namespace {

using nlohmann::ordered_json;

constexpr int kDefaultSteps = 5;
constexpr int kWarmupSteps = 2;  ///< memory is touched and pools are filled; not counted

double seconds(SimTime time) {
  return to_seconds(time).count();
}

ordered_json time_json(const ComparedTime& time) {
  return {{"predicted_s", seconds(time.predicted)},
          {"measured_s", seconds(time.measured)},
          {"error_ratio", error_ratio(time)}};
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

ordered_json comparison_json(const Comparison& c, const RunResult& result) {
  ordered_json ops = ordered_json::array();
  for (const OpComparison& op : c.ops) {
    ordered_json entry = {{"op", op_name(op.op)}, {"stage", op.stage}, {"count", op.count}};
    entry.update(time_json(op.mean));
    ops.push_back(std::move(entry));
  }
  ordered_json ranks = ordered_json::array();
  for (std::size_t r = 0; r < c.ranks.size(); ++r) {
    ranks.push_back({{"rank", r},
                     {"busy", time_json(c.ranks[r].busy)},
                     {"idle", time_json(c.ranks[r].idle)},
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
      {"fastest_step_s", seconds(c.fastest_step)},
      {"slowest_step_s", seconds(c.slowest_step)},
      {"bubble_ratio", {{"predicted", c.predicted_bubble_ratio}, {"measured", c.measured_bubble_ratio}}},
      {"span_bubble_ratio", {{"predicted", c.predicted_span_bubble_ratio}, {"measured", c.measured_span_bubble_ratio}}},
      {"losses", result.losses},
      {"ops", ops},
      {"ranks", ranks},
      {"causes", causes}};
}

/// The table that a newcomer reads last.
std::string summary_text(const Comparison& c, const RunResult& result) {
  const auto percent = [](double predicted, double measured) {
    return measured == 0 ? std::string("-") : fmt::format("{:+.1f} %", 100 * (predicted / measured - 1));
  };
  TextTable table{.head = {"", "predicted", "measured", "error"}};
  table.rows.push_back({fmt::format("step time (median of {})", c.steps), duration_text(seconds(c.step.predicted)),
                        duration_text(seconds(c.step.measured)), fmt::format("{:+.1f} %", 100 * error_ratio(c.step))});
  table.rows.push_back({"bubble (share of time that ranks idle)",
                        fmt::format("{:.1f} %", 100 * c.predicted_bubble_ratio),
                        fmt::format("{:.1f} %", 100 * c.measured_bubble_ratio),
                        fmt::format("{:+.1f} points", 100 * (c.predicted_bubble_ratio - c.measured_bubble_ratio))});
  for (std::size_t r = 0; r < c.ranks.size(); ++r) {
    const double predicted = static_cast<double>(c.ranks[r].predicted_peak_bytes);
    const double measured = static_cast<double>(c.ranks[r].measured_peak_bytes);
    table.rows.push_back({fmt::format("peak memory of rank {}", r), bytes_text(predicted), bytes_text(measured),
                          percent(predicted, measured)});
  }
  return to_text(table) + fmt::format("\nloss: {:.4f} before the first step, {:.4f} before the last\n",
                                      result.losses.front(), result.losses.back());
}

}  // namespace

int validate_verb(const RunArguments& arguments) {
  for (const std::string& path : {arguments.trace, arguments.output, arguments.svg}) {
    if (!path.empty()) require_writable(path);
  }
  const Plan plan = plan_input(arguments.plan);
  const int steps = arguments.steps > 0 ? arguments.steps : kDefaultSteps;

  // The prediction stands before anything has run.
  const Predicted predicted = runnable_prediction(plan);
  const RunSpec spec = lower_plan(plan, predicted,
                                  {.steps = kWarmupSteps + steps,
                                   .seed = arguments.seed,
                                   .text = training_text(arguments.text),
                                   .text_name = text_name(arguments.text)});
  print_note(fmt::format("predicted before the first step: {}", duration_text(seconds(predicted.simulation.makespan))));
  if (!arguments.output.empty()) {
    write_file(arguments.output, to_json(predicted.prediction).dump(2) + "\n");
    print_note(fmt::format("wrote {}", arguments.output));
  }

  const Seconds expected = spec.steps * to_seconds(predicted.simulation.makespan);
  const RunResult result = with_progress("running", expected, [&spec] { return run(spec); });
  const std::vector<Timeline> measured(result.timelines.begin() + kWarmupSteps, result.timelines.end());
  const Comparison comparison = compare(predicted.simulation.timeline, measured);

  const auto nearest_to_median = std::ranges::min_element(
      measured, {}, [&](const Timeline& t) { return std::abs((makespan_of(t) - comparison.step.measured).count()); });
  if (!arguments.trace.empty()) {
    write_file(arguments.trace, write_chrome_trace(*nearest_to_median));
    print_note(fmt::format("wrote {}: the median step", arguments.trace));
  }
  if (!arguments.svg.empty()) {
    write_file(arguments.svg, draw_svg({predicted.simulation.timeline, *nearest_to_median}));
    print_note(fmt::format("wrote {}", arguments.svg));
  }
  if (arguments.json) {
    print_answer(comparison_json(comparison, result).dump(2) + "\n");
  } else {
    print_answer(fmt::format("{}, {}, {} ranks on {} of this machine\n\n{}\n{}", plan.model.name, to_text(plan.layout),
                             world_size(spec.grid), plan.cluster.device.name,
                             to_text(comparison, predicted.simulation.timeline), summary_text(comparison, result)));
  }
  return kDone;
}

}  // namespace plumb
