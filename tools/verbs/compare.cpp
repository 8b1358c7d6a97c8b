#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/exchange/import_settings.h"
#include "planner/exchange/run_differences.h"
#include "planner/observe/measured_runs.h"
#include "planner/search/evaluate_plan.h"
#include "planner/spec/short_layout.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/plan_input.h"
#include "tools/inputs/target_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/gzip.h"
#include "tools/io/line_file.h"
#include "tools/io/usage.h"
#include "tools/pages/run_page.h"
#include "tools/pages/write_page.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/observed_report.h"
#include "tools/reports/stack_text.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

/// Throws InputError if the settings that the log prints are of another run than the plan's. Settings that cannot be
/// read are noted.
void require_same_run(const LoggedSettings& logged, const std::string& file, const Plan& plan) {
  std::vector<std::string> differences;
  try {
    differences = run_differences(import_settings(logged.target, logged.settings, logged.facts, file).run, plan);
  } catch (const InputError& error) {
    return print_note(fmt::format("the settings in this log were not held against the plan: {}", error.what()));
  }
  if (differences.empty()) return;
  throw InputError(fmt::format("{}: this is another run than the plan's: {}. `plumb import {}` reads its settings",
                               file, fmt::join(differences, ", "), file));
}

ObservedRun read_log(std::istream& stream, const std::string& file, const Plan& plan) {
  LoggedSettingsReader settings = logged_settings_reader();
  TrainingLogReader steps(file);
  TimerTableReader timers;
  read_lines(stream, [&](std::string_view line) {
    settings.take(line);
    steps.take(line);
    timers.take(line);
  });
  if (const std::optional<LoggedSettings> logged = settings.finish()) require_same_run(*logged, file, plan);
  return read_as(FileKind::kMeasurement, file, [&] { return run_of_log(steps.finish(), timers.finish(), plan); });
}

/// Returns what `read` makes of each file, of which the first is open.
template <class Read>
auto read_ranks(std::istream& first, const std::vector<std::string>& files, Read read) {
  std::vector<decltype(read(std::declval<std::istream&>(), std::string()))> ranks;
  for (const std::string& file : files) {
    read_as(FileKind::kTrace, file, [&] {
      if (ranks.empty()) return ranks.push_back(read(first, file));
      InputStream stream(file);
      ranks.push_back(read(stream, file));
    });
  }
  return ranks;
}

/// Each file is opened once and read once, so that it may also be a pipe.
ObservedRun read_run(const std::vector<std::string>& files, const Plan& plan) {
  InputStream first(files.front());
  const std::string_view begin = first.ahead();
  if (is_scope_trace_begin(begin)) return run_of_scopes(read_ranks(first, files, read_scope_trace));
  if (is_json_begin(begin)) return run_of_profiles(read_ranks(first, files, read_profiler_trace));
  if (files.size() == 1) return read_log(first, files.front(), plan);
  throw UsageError(
      fmt::format("{} is a log, and a run has one: give it alone, or the profiles of several ranks", files.front()));
}

}  // namespace

int compare_verb(const CompareArguments& arguments) {
  if (!arguments.html.empty()) require_writable(arguments.html);
  const Plan plan = plan_input(arguments.plan);
  ObservedRun run = read_run(arguments.files, plan);
  Pricing pricing(plan.model, plan.cluster, plan.training);
  const Evaluation evaluation =
      evaluate(pricing, plan, std::nullopt,
               {.simulation = {.record_timeline = !run.operations.empty()}, .network = NetworkOptions{}});
  if (!evaluation.exists) throw InputError(fmt::format("{}: {}", arguments.plan, evaluation.infeasible));
  ObservedReport report{.plan = fmt::format("{} on {}:{}, {}", plan.model.name, plan.cluster.name, plan.cluster.devices,
                                            short_text(plan.layout)),
                        .stack = stack_text(plan.training),
                        .file = fmt::format("{}", fmt::join(arguments.files, ", ")),
                        .compared = compare_run(pricing, evaluation, run),
                        .intervals = intervals_of(plan, evaluation.simulation),
                        .figures = explaining_figures(plan, evaluation, run)};
  if (!plan.order) report.changes = layout_changes(pricing, plan.layout, step_time(evaluation.simulation));
  report.run = std::move(run);
  arguments.json ? print_answer(json_answer(to_json(report))) : print_text(to_text(report));
  if (!arguments.html.empty()) write_page(arguments.html, run_page(report), &plan);
  return kDone;
}

}}  // namespace plumb::tools
