#include "tools/reports/simulation_report.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "schedules/time.h"
#include "tools/reports/exposed_report.h"
#include "tools/reports/idle_report.h"
#include "tools/reports/memory_report.h"
#include "tools/reports/or_null.h"
#include "tools/reports/sensitivity_report.h"
#include "tools/reports/step_line.h"
#include "tools/reports/table.h"
#include "tools/reports/time_by_cause.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

std::optional<double> per_second(const std::optional<double>& per_step, const Simulation& simulation) {
  const double time = seconds(simulation.makespan);
  if (!per_step || time <= 0) return std::nullopt;
  return *per_step / time;
}

/// Returns a time in the unit that was given, or in the one that suits it.
std::string time_text(double seconds, const ReportContext& context) {
  return context.unit_given ? fmt::format("{:.6g} {}", seconds / context.unit.seconds, context.unit.name)
                            : duration_text(seconds);
}

/// Time on the critical path by operation: all of the makespan.
std::vector<std::pair<std::string, SimTime>> critical_shares(const Simulation& simulation) {
  std::map<std::string, SimTime> shares;
  const std::vector<SimTime> added = contributions(simulation.critical_path);
  for (std::size_t i = 0; i < added.size(); ++i)
    shares[std::string(op_name(simulation.critical_path[i].action.op))] += added[i];
  std::vector<std::pair<std::string, SimTime>> sorted(shares.begin(), shares.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

}  // namespace

int optimizer_steps_of(const Schedule& schedule) {
  std::vector<int> steps(schedule.stages.size(), 0);
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) steps[action.stage] += action.op == Op::kOptimizerStep ? 1 : 0;
  }
  return steps.empty() ? 1 : std::max(1, *std::ranges::max_element(steps));
}

ordered_json simulation_json(const Simulation& simulation, const ReportContext& context) {
  ordered_json critical = ordered_json::array();
  const std::vector<SimTime> added = contributions(simulation.critical_path);
  for (std::size_t i = 0; i < added.size(); ++i) {
    const CriticalStep& step = simulation.critical_path[i];
    critical.push_back({{"replica", step.replica},
                        {"rank", step.rank},
                        {"position", step.position},
                        {"action", to_text(step.action)},
                        {"start_s", seconds(step.start)},
                        {"end_s", seconds(step.end)},
                        {"adds_s", seconds(added[i])}});
  }
  ordered_json slow = ordered_json::array();
  for (const SlowRankOnPath& rank : context.slow_ranks)
    slow.push_back({{"rank", rank.world_rank}, {"speed", rank.speed}, {"on_critical_path_s", seconds(rank.on_path)}});
  ordered_json ranks = ordered_json::array();
  for (std::size_t r = 0; r < simulation.busy.size(); ++r) {
    ranks.push_back({{"rank", r},
                     {"busy_s", seconds(simulation.busy[r])},
                     {"idle_s", seconds(simulation.makespan - simulation.busy[r])},
                     {"first_start_s", seconds(simulation.first_start[r])},
                     {"last_end_s", seconds(simulation.last_end[r])},
                     {"peak_memory_bytes",
                      context.has_memory ? ordered_json(simulation.peak_memory_bytes[r]) : ordered_json(nullptr)},
                     {"memory_at_peak",
                      context.memory_peaks.empty() ? ordered_json(nullptr) : memory_peak_json(context.memory_peaks[r])},
                     {"peak_activations", simulation.peak_activations[r]},
                     {"idle_by_cause", context.idle.empty() ? ordered_json(nullptr) : idle_json(context.idle[r])},
                     {"time", context.exposed.empty() ? ordered_json(nullptr) : exposed_json(context.exposed[r])},
                     {"on_critical_path", context.exposed_on_path.empty() ? ordered_json(nullptr)
                                                                          : exposed_json(context.exposed_on_path[r])}});
  }
  return {
      {"step_time_s", seconds(simulation.makespan)},
      {"makespan_s", seconds(simulation.makespan)},
      {"makespan_unshared_s", seconds(simulation.makespan - simulation.added)},
      {"simulated_replicas", simulation.replicas},
      {"replica", simulation.replica},
      {"bubble_ratio", simulation.bubble_ratio},
      {"span_bubble_ratio", simulation.span_bubble_ratio},
      {"samples_per_s", or_null(per_second(context.samples_per_step, simulation))},
      {"tokens_per_s", or_null(per_second(context.tokens_per_step, simulation))},
      {"mfu", or_null(context.mfu_ratio)},
      {"peak_memory_bytes", context.has_memory ? ordered_json(simulation.peak_memory_bytes) : ordered_json(nullptr)},
      {"peak_activations", simulation.peak_activations},
      {"critical_path", simulation.critical_path.empty() ? ordered_json(nullptr) : critical},
      {"slow_ranks", simulation.critical_path.empty() ? ordered_json(nullptr) : slow},
      {"ranks", ranks},
      {"sensitivity",
       context.sensitivity ? sensitivity_json(*context.sensitivity, context.by_resource) : ordered_json(nullptr)},
      {"conditioning", context.conditioning ? conditioning_json(*context.conditioning) : ordered_json(nullptr)},
      {"noise", context.noise ? noise_json(*context.noise) : ordered_json(nullptr)},
      {"engine", simulation.engine}};
}

std::string simulation_verdict(const Simulation& simulation, const ReportContext& context, const Plan* plan) {
  const double makespan = seconds(simulation.makespan);
  const std::string time =
      context.optimizer_steps == 1
          ? time_text(makespan, context) + " a step"
          : fmt::format("{} optimizer steps in {}, {} each", context.optimizer_steps, time_text(makespan, context),
                        time_text(makespan / context.optimizer_steps, context));
  if (plan == nullptr)
    return fmt::format("{}, bubble {:.2f} %, span bubble {:.2f} %, {} activations on a rank at most", time,
                       100 * simulation.bubble_ratio, 100 * simulation.span_bubble_ratio,
                       std::ranges::max(simulation.peak_activations));
  const HeldMemory tightest = tightest_memory(*plan, simulation.peak_memory_bytes);
  return to_text(StepLine{.time = time,
                          .tokens_per_s = per_second(context.tokens_per_step, simulation),
                          .samples_per_s = per_second(context.samples_per_step, simulation),
                          .mfu_ratio = context.mfu_ratio,
                          .bubble_ratio = simulation.bubble_ratio,
                          .peak_bytes = context.has_memory ? std::optional(tightest.peak) : std::nullopt,
                          .limit_bytes = tightest.limit});
}

std::string simulation_text(const Simulation& simulation, const ReportContext& context) {
  const auto time = [&context](SimTime of) { return time_text(seconds(of), context); };
  std::string text;
  if (!context.idle.empty()) {
    text += to_text(time_by_cause(simulation.busy, context.idle, context.exposed),
                    [&context](double of) { return time_text(of, context); });
  }
  if (context.noise) text += "\n" + noise_text(*context.noise, time);
  for (const SlowRankOnPath& rank : context.slow_ranks) {
    text += fmt::format(
        "slow rank {}, at {} of its speed: {}\n", rank.world_rank, rank.speed,
        rank.on_path > SimTime{0} ? time(rank.on_path) + " of the critical path" : "not on the critical path");
  }
  if (context.conditioning && context.conditioning->is_ill) text += conditioning_text(*context.conditioning, time);
  if (context.sensitivity) {
    text += "\n" +
            binding_text(*context.sensitivity, context.by_resource, simulation.makespan,
                         [&context](double of) { return time_text(of, context); }) +
            "\n";
  }
  return text;
}

std::string simulation_details(const Simulation& simulation, const ReportContext& context) {
  const auto time = [&context](SimTime of) { return time_text(seconds(of), context); };
  std::string text = fmt::format("\nsimulated by the {} engine", simulation.engine);
  if (simulation.added != SimTime{0}) {
    const double longer = seconds(simulation.added) / seconds(simulation.makespan - simulation.added);
    text += fmt::format(", {:+.3g} % by shared links or slow ranks", 100 * longer);
  }
  if (simulation.replicas > 1)
    text += fmt::format(", replica {} the last of {} simulated", simulation.replica, simulation.replicas);
  TextTable table{.head = {"rank", "first start", "last end", "busy", "idle", "peak activations"}};
  if (context.has_memory) table.head.emplace_back("peak memory");
  for (std::size_t r = 0; r < simulation.busy.size(); ++r) {
    table.rows.push_back({std::to_string(r), time(simulation.first_start[r]), time(simulation.last_end[r]),
                          time(simulation.busy[r]), time(simulation.makespan - simulation.busy[r]),
                          std::to_string(simulation.peak_activations[r])});
    if (context.has_memory)
      table.rows.back().push_back(bytes_text(static_cast<double>(simulation.peak_memory_bytes[r])));
  }
  text += "\n\n" + to_text(table);
  if (simulation.critical_path.empty()) return text;
  text += "\n" + idle_text(context.idle, time);
  if (has_communication(context.exposed)) text += "\n" + exposed_text(context.exposed, context.exposed_on_path, time);
  std::vector<std::string> shares;
  for (const auto& [op, share] : critical_shares(simulation)) {
    if (share > SimTime{0}) shares.push_back(fmt::format("{} {}", op, time(share)));
  }
  text += "\n" + fmt::format("critical path: {} actions from {} on rank {} to {} on rank {}: {}\n",
                             simulation.critical_path.size(), to_text(simulation.critical_path.front().action),
                             simulation.critical_path.front().rank, to_text(simulation.critical_path.back().action),
                             simulation.critical_path.back().rank, fmt::join(shares, ", "));
  if (context.sensitivity) text += sensitivity_text(*context.sensitivity, context.by_resource, simulation.makespan);
  return text;
}

}}  // namespace plumb::tools
