#include "tools/reports/noise_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/time.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
nlohmann::ordered_json noise_json(const NoiseReport& report) {
  const NoisySteps& steps = report.steps;
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (std::size_t r = 0; r < steps.mean_idle.size(); ++r) {
    ranks.push_back({{"rank", r},
                     {"idle_without_noise_s", seconds(steps.quiet_idle[r])},
                     {"mean_idle_s", steps.mean_idle[r].count()},
                     {"added_idle_s", steps.mean_idle[r].count() - seconds(steps.quiet_idle[r])}});
  }
  return {{"cv", report.spec.cv},
          {"rank_cv", report.spec.rank_cv},
          {"comm_cv", report.spec.communication_cv},
          {"distribution", distribution_name(report.spec.distribution)},
          {"runs", report.spec.runs},
          {"seed", report.spec.seed},
          {"replicas", report.spec.replicas},
          {"step_time_without_noise_s", seconds(steps.quiet_makespan)},
          {"mean_step_time_s", mean_step(steps).count()},
          {"standard_deviation_s", standard_deviation(steps).count()},
          {"p50_step_time_s", seconds(percentile(steps.makespans, 50))},
          {"p95_step_time_s", seconds(percentile(steps.makespans, 95))},
          {"p99_step_time_s", seconds(percentile(steps.makespans, 99))},
          {"slowdown_ratio", slowdown_ratio(steps)},
          {"ranks", ranks}};
}

std::string noise_text(const NoiseReport& report, const std::function<std::string(SimTime)>& time) {
  const NoisySteps& steps = report.steps;
  const auto rounded = [&time](Seconds s) { return time(to_sim_time(s)); };
  std::string text = fmt::format(
      "with noise ({} runs{}, {}): step time p50 {}, p95 {}, p99 {}, mean {}, which is {:+.2f} % of {} without: the "
      "slowdown of synchrony\n",
      report.spec.runs, report.spec.replicas > 1 ? fmt::format(" of {} replicas", report.spec.replicas) : "",
      distribution_name(report.spec.distribution), time(percentile(steps.makespans, 50)),
      time(percentile(steps.makespans, 95)), time(percentile(steps.makespans, 99)), rounded(mean_step(steps)),
      100 * (slowdown_ratio(steps) - 1), time(steps.quiet_makespan));
  TextTable table{.head = {"rank", "idle without noise", "with", "more"}};
  for (std::size_t r = 0; r < steps.mean_idle.size(); ++r) {
    const Seconds more = steps.mean_idle[r] - to_seconds(steps.quiet_idle[r]);
    table.rows.push_back({std::to_string(r), time(steps.quiet_idle[r]), rounded(steps.mean_idle[r]),
                          more < Seconds{0} ? "-" + rounded(-more) : rounded(more)});
  }
  return text + to_text(table);
}

}}  // namespace plumb::tools
