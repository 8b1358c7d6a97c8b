#include "planner/score/measured_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/simulate.h"

namespace plumb { inline namespace planner {
namespace {

using nlohmann::json;

constexpr Seconds kMillisecond{1e-3};
constexpr Seconds kMicrosecond{1e-6};

/// Returns the value under `key`, or a null.
const json& value_of(const json& object, const char* key) {
  static const json kNull;
  const auto it = object.find(key);
  return it == object.end() ? kNull : *it;
}

double number(const json& value, std::string_view key, const std::string& place) {
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0) {
    throw SpecError(fmt::format("{}.{}: {} is not a number of 0 or more", place, key, json_line(value)));
  }
  return value.get<double>();
}

int count(const json& row, const char* key, const std::string& place) {
  const double value = number(value_of(row, key), key, place);
  if (value < 1 || value > 1e6 || value != std::floor(value)) {
    throw SpecError(fmt::format("{}.{}: {} is not a whole number of 1 or more", place, key, value));
  }
  return static_cast<int>(value);
}

std::vector<Seconds> seconds_list(const json& list, Seconds unit, const char* key, const std::string& place, int size) {
  if (!list.is_array() || static_cast<int>(list.size()) != size) {
    throw SpecError(fmt::format("{}.measured.{}: give a list of {} numbers, one a rank", place, key, size));
  }
  std::vector<Seconds> result;
  for (const json& value : list) result.push_back(number(value, key, place) * unit);
  return result;
}

std::optional<Seconds> measured_step(const json& row, const std::string& place) {
  for (const char* part : {"measured", "derived"}) {
    const json& times = value_of(row, part);
    for (const auto& [key, unit] : {std::pair{"step_time_s", Seconds{1}}, std::pair{"step_time_ms", kMillisecond}}) {
      const json& value = value_of(times, key);
      if (!value.is_null()) return number(value, key, place) * unit;
    }
  }
  return std::nullopt;
}

/// Returns true if a rank spent time in something that is no action of the pipeline.
bool has_extra_times(const json& measured) {
  const json& extra = value_of(measured, "extra_us_per_rank");
  return std::ranges::any_of(extra, [](const json& times) {
    return std::ranges::any_of(times, [](const json& time) { return time.is_number() && time.get<double>() != 0; });
  });
}

/// Returns the times of a stage, or nothing if the row has none. `chunks` share them evenly.
std::optional<ChunkCosts> chunk_costs(const json& row, const std::string& place, int ranks, int chunks) {
  const json& profiled = value_of(row, "profiled_ms");
  const json& measured = value_of(row, "measured");
  if (!profiled.is_null()) {
    const auto stage = [&](const char* key) { return number(value_of(profiled, key), key, place) * kMillisecond; };
    const double share = 1.0 / chunks;
    return ChunkCosts{.forward = {stage("TF") * share},
                      .input_grad = {stage("TB") * share},
                      .weight_grad = {stage("TW") * share},
                      .hop_latency = stage("Tcomm")};
  }
  const json& forward = value_of(measured, "fwd_us_per_rank");
  const json& backward = value_of(measured, "bwd_us_per_rank");
  if (forward.is_null() || backward.is_null() || chunks != 1) return std::nullopt;
  return ChunkCosts{.forward = seconds_list(forward, kMicrosecond, "fwd_us_per_rank", place, ranks),
                    .backward = seconds_list(backward, kMicrosecond, "bwd_us_per_rank", place, ranks)};
}

double log_error(const MeasuredRun& run, Seconds action_overhead) {
  return std::log(predicted_step_time(run, action_overhead) / run.measured_step);
}

double mean_absolute_log_error(const std::vector<MeasuredRun>& runs, Seconds action_overhead) {
  double sum = 0;
  for (const MeasuredRun& run : runs) sum += std::abs(log_error(run, action_overhead));
  return sum / static_cast<double>(runs.size());
}

/// Returns the overhead at which the run's prediction is its measurement, to a picosecond; 0 if it is too long without
/// any.
Seconds exact_overhead(const MeasuredRun& run) {
  SimTime low{0};
  SimTime high = to_sim_time(run.measured_step);  // one action of that overhead is a step already
  while (high - low > SimTime{1}) {
    const SimTime middle = low + (high - low) / 2;
    (log_error(run, to_seconds(middle)) < 0 ? low : high) = middle;
  }
  return to_seconds(low);
}

}  // namespace

MeasuredRunReading measured_run(const json& row, const std::string& place, int interleaved_chunks) {
  const json& name = value_of(row, "schedule");
  const std::string schedule = name.is_string() ? name.get<std::string>() : "";
  const json& measured = value_of(row, "measured");
  if (value_of(row, "profiled_ms").is_null() && value_of(measured, "fwd_us_per_rank").is_null()) {
    return {.run = std::nullopt, .reason = "its operations were not timed"};
  }
  const bool interleaved = schedule == "1F1B-I";
  const bool zero_bubble = schedule == "ZB-1p" || schedule == "ZB-2p";
  if (!interleaved && !zero_bubble && schedule != "1F1B") {
    return {.run = std::nullopt, .reason = fmt::format("its schedule \"{}\" is not known here", schedule)};
  }
  if (has_extra_times(measured)) {
    return {.run = std::nullopt, .reason = "its ranks also work outside the actions of the schedule"};
  }
  const std::optional<Seconds> step = measured_step(row, place);
  if (!step || *step <= Seconds{0}) return {.run = std::nullopt, .reason = "its step was not measured"};

  const json& vpp = value_of(row, "vpp");
  const int chunks = !interleaved ? 1 : vpp.is_number() ? count(row, "vpp", place) : interleaved_chunks;
  ScheduleParameters parameters{.ranks = count(row, "pp", place),
                                .microbatches = count(row, "n_microbatches", place),
                                .chunks = chunks,
                                .memory_ratio = schedule == "ZB-2p" ? 2.0 : 1.0};
  const std::optional<ChunkCosts> costs = chunk_costs(row, place, parameters.ranks, chunks);
  if (!costs) return {.run = std::nullopt, .reason = "its operations were not timed by chunk"};
  if (zero_bubble && !costs->backward.empty()) {
    return {.run = std::nullopt, .reason = "the two halves of its backward were not timed apart"};
  }
  parameters.costs = *costs;
  const Schedule order = make_schedule(zero_bubble ? "zb-auto" : interleaved ? "interleaved" : "1f1b", parameters);
  const json& id = value_of(row, "id");
  return {.run = MeasuredRun{.id = id.is_string() ? id.get<std::string>() : place,
                             .lowered = lower(order),
                             .costs = chunk_cost_table(static_cast<int>(order.stages.size()), *costs),
                             .by_span = zero_bubble,
                             .measured_step = *step},
          .reason = ""};
}

Seconds predicted_step_time(const MeasuredRun& run, Seconds action_overhead) {
  if (!(action_overhead >= Seconds{0})) throw SpecError("the overhead of an action cannot be negative");
  CostTable costs = run.costs;
  for (StageCosts& stage : costs.stages) {
    for (const Op op : {Op::kForward, Op::kBackward, Op::kInputGrad, Op::kWeightGrad}) {
      for (std::vector<Segment>& segments : stage.segments[static_cast<std::size_t>(op)]) {
        segments.push_back({.seconds = action_overhead});
      }
    }
  }
  const Simulation simulation = simulate(run.lowered, costs, {.validate = false, .record_timeline = false});
  return to_seconds(run.by_span ? longest_span(simulation) : simulation.makespan);
}

Seconds fitted_action_overhead(const std::vector<MeasuredRun>& runs) {
  if (runs.empty()) throw SpecError("an overhead cannot be fitted to no run: give at least one");
  Seconds best{0};
  double least = std::numeric_limits<double>::infinity();
  for (const MeasuredRun& run : runs) {
    const Seconds candidate = exact_overhead(run);
    const double error = mean_absolute_log_error(runs, candidate);
    if (error >= least) continue;
    least = error;
    best = candidate;
  }
  return best;
}

std::vector<double> step_time_errors(const std::vector<MeasuredRun>& runs, Seconds action_overhead) {
  std::vector<double> errors;
  for (const MeasuredRun& run : runs) {
    errors.push_back(predicted_step_time(run, action_overhead) / run.measured_step - 1);
  }
  return errors;
}

}}  // namespace plumb::planner
