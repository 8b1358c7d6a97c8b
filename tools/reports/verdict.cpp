#include "tools/reports/verdict.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/time.h"
#include "tools/reports/comparison_report.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

constexpr double kDisturbingCores = 0.1;

std::string_view outcome_name(Outcome outcome) {
  return outcome == Outcome::kPass ? "pass" : outcome == Outcome::kFail ? "fail" : "disturbed";
}

/// The rank whose predicted peak memory is furthest off, in percent; nothing where memory was not measured.
struct MemoryError {
  std::size_t rank = 0;
  double pct = 0;
};
std::optional<MemoryError> largest_memory_error(const Comparison& comparison) {
  std::optional<MemoryError> largest;
  for (std::size_t rank = 0; rank < comparison.ranks.size(); ++rank) {
    const RankComparison& of = comparison.ranks[rank];
    if (of.measured_peak_bytes == 0) continue;
    const double pct =
        100 * (static_cast<double>(of.predicted_peak_bytes) / static_cast<double>(of.measured_peak_bytes) - 1);
    if (!largest || std::abs(pct) > std::abs(largest->pct)) largest = {rank, pct};
  }
  return largest;
}

/// Returns what disturbed the run, as a clause; empty if nothing is known to have.
std::string disturbance(const Comparison& comparison, const MachineState& machine, double tolerance_pct) {
  if (machine.others && machine.others->cores + machine.others->host >= kDisturbingCores)
    return fmt::format("other programs and the host took {:.2f} cores", machine.others->cores + machine.others->host);
  for (const auto& speed : {machine.before, machine.after})
    if (speed && 100 * std::abs(speed->ratio - 1) > tolerance_pct)
      return fmt::format("the machine ran at {:.2f} of its calibrated speed", speed->ratio);
  const MedianInterval& interval = comparison.step_interval;
  if (100 * seconds(interval.high - interval.low) > tolerance_pct * seconds(comparison.step.measured))
    return fmt::format("the steps scatter: their median lies between {} and {}", duration_text(seconds(interval.low)),
                       duration_text(seconds(interval.high)));
  return {};
}

std::string largest_cause(const Comparison& comparison, const Timeline& predicted) {
  if (comparison.causes.empty()) return "there is no cause to name";
  const ErrorCause& cause = comparison.causes.front();
  return fmt::format("the largest cause is {}, predicted {} and measured {} along the critical path",
                     cause_text(cause, predicted), duration_text(seconds(cause.time.predicted)),
                     duration_text(seconds(cause.time.measured)));
}

}  // namespace

Verdict verdict_of(const Comparison& comparison, const Timeline& predicted, const MachineState& machine,
                   double tolerance_pct) {
  const double step_pct = 100 * error_ratio(comparison.step);
  const std::optional<MemoryError> memory = largest_memory_error(comparison);
  const std::string step = fmt::format("a step of {} was predicted, {} measured ({:+.1f} %)",
                                       duration_text(seconds(comparison.step.predicted)),
                                       duration_text(seconds(comparison.step.measured)), step_pct);
  const bool step_holds = std::abs(step_pct) <= tolerance_pct;
  if (memory && std::abs(memory->pct) > tolerance_pct)
    return {Outcome::kFail, fmt::format("the peak memory of rank {} is off by {:+.1f} %, more than {:g} %; {}",
                                        memory->rank, memory->pct, tolerance_pct, step)};
  if (step_holds)
    return {Outcome::kPass,
            fmt::format("{}{}; within {:g} %", step,
                        memory ? fmt::format(", peak memory within {:+.1f} %", memory->pct) : "", tolerance_pct)};
  if (const std::string disturbed = disturbance(comparison, machine, tolerance_pct); !disturbed.empty())
    return {Outcome::kDisturbed, fmt::format("{}, more than {:g} %, but {}: run it again on a quiet machine", step,
                                             tolerance_pct, disturbed)};
  return {Outcome::kFail,
          fmt::format("{}, more than {:g} %; {}", step, tolerance_pct, largest_cause(comparison, predicted))};
}

std::string to_text(const Verdict& verdict) {
  std::string name(outcome_name(verdict.outcome));
  std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  return fmt::format("{}: {}", name, verdict.why);
}

nlohmann::ordered_json to_json(const Verdict& verdict, double tolerance_pct) {
  return {{"outcome", outcome_name(verdict.outcome)}, {"why", verdict.why}, {"tolerance_pct", tolerance_pct}};
}

}}  // namespace plumb::tools
