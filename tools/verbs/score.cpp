#include "planner/score/score.h"

#include <algorithm>
#include <cmath>
#include <future>
#include <iterator>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/score/collective_rows.h"
#include "planner/score/fit.h"
#include "planner/score/fit_error_bars.h"
#include "planner/score/timed_score.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/score_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/pages/fidelity_page.h"
#include "tools/pages/write_page.h"
#include "tools/reports/collective_report.h"
#include "tools/reports/left_out_report.h"
#include "tools/reports/own_runs.h"
#include "tools/reports/score_page.h"
#include "tools/reports/score_report.h"
#include "tools/reports/source_errors.h"
#include "tools/reports/timed_report.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

/// Without constants to fit, groups that are left out in turn judge the intervals.
bool judges_intervals(const ScoreArguments& arguments) {
  return arguments.fit.empty() && arguments.holdout.starts_with("each-") && arguments.holdout != "each-family";
}

std::string holdout_of(const ScoreArguments& arguments) {
  return arguments.holdout.empty() ? "model" : arguments.holdout;
}

/// Returns the command that was given, as the report repeats it.
std::string command_of(const ScoreArguments& arguments) {
  std::string command = "plumb score";
  for (const std::string& file : arguments.files) command += " " + file;
  for (const std::string& table : arguments.tables) command += " --table " + table;
  for (const std::string& runs : arguments.runs) command += " --runs " + runs;
  for (const std::string& set : arguments.set) command += " --set " + set;
  for (const std::string& fit : arguments.fit) command += " --fit " + fit;
  if (!arguments.fit.empty() || judges_intervals(arguments)) command += " --holdout " + holdout_of(arguments);
  if (!arguments.error_bars.empty()) command += " --error-bars " + arguments.error_bars;
  if (arguments.general_rules) command += " --general-rules";
  if (arguments.assume_default) command += " --assume-default";
  for (const std::string& only : arguments.only) command += " --only '" + only + "'";
  if (!arguments.output.empty()) command += " -o " + arguments.output;
  return command;
}

std::optional<FitResult> fit_of(const ScoreArguments& arguments, const ScoreInput& input) {
  if (arguments.fit.empty()) return std::nullopt;
  std::vector<FitConstant> constants;
  for (const std::string& text : arguments.fit) constants.push_back(parse_fit_constant(text));
  return fit_constants(input.library, input.files, constants, parse_holdout(holdout_of(arguments)));
}

/// Returns the score of NCCL's model of the cluster presets against rows of collectives, or nothing if there are none.
std::optional<CollectiveScore> collectives_of(const ScoreInput& input) {
  std::vector<CollectiveRows> files;
  for (const PublishedRows& published : input.files) {
    CollectiveRows read = read_collective_rows(published);
    if (!read.rows.empty()) files.push_back(std::move(read));
  }
  if (files.empty()) return std::nullopt;
  std::map<std::string, ClusterSpec> clusters;
  for (const auto& [name, json] : input.library.clusters) clusters[name] = cluster_from_json(json, name);
  return score_collectives(files, clusters);
}

/// Judges the intervals on the rows as a stranger reads them: by the general rules where a framework is named, as typed
/// where it is assumed. Memory of named frameworks is read by the mappings of its sources, which are few.
std::optional<LeftOut> left_out_of(const ScoreArguments& arguments, const std::vector<SourceScore>& by_source,
                                   const std::vector<OwnRun>& runs) {
  if (!judges_intervals(arguments)) return std::nullopt;
  std::vector<Residual> residuals;
  const auto add = [&](const std::vector<SourceScore>& scores, const auto& is_taken) {
    std::ranges::copy_if(residuals_of(scores), std::back_inserter(residuals), is_taken);
  };
  const auto read_as_typed_or_general = [&](RowReading reading) {
    const ScoreInput input = score_input(arguments, reading);
    return score_files(input.library, input.files);
  };
  add(by_source, [](const Residual& residual) {
    return residual.of_memory && residual.traits.framework == FrameworkKnown::kNamed;
  });
  add(read_as_typed_or_general(RowReading::kGeneral), [](const Residual& residual) {
    const FrameworkKnown known = residual.traits.framework;
    return known == FrameworkKnown::kUnknown || (known == FrameworkKnown::kNamed && !residual.of_memory);
  });
  add(read_as_typed_or_general(RowReading::kAsTyped), [](const Residual&) { return true; });
  for (const OwnRun& run : runs) {
    residuals.push_back({.source = "own runs, " + run.file,
                         .stack = std::string(kOwnExecutor),
                         .traits = {.framework = FrameworkKnown::kOwn},
                         .log_error = std::log(run.measured_s / run.predicted_s)});
    for (const auto& [predicted, measured] : run.peaks) {
      residuals.push_back(residuals.back());
      residuals.back().of_memory = true;
      residuals.back().log_error = std::log(measured / predicted);
    }
  }
  LeftOut left_out{.by = arguments.holdout,
                   .groups = judge_error_bars(residuals, parse_left_out_by(arguments.holdout)),
                   .bars = fit_error_bars(residuals)};
  if (!arguments.error_bars.empty()) write_file(arguments.error_bars, json_answer(to_json(left_out.bars)));
  return left_out;
}

/// Returns the reason if nothing was compared, since a score without rows is a mistake of the input.
std::optional<std::string> why_none_compared(const ScoreArguments& arguments, const ScoreInput& input,
                                             const std::vector<SourceScore>& scores,
                                             const std::optional<CollectiveScore>& collectives) {
  if (!arguments.runs.empty() || collectives) return std::nullopt;
  int rows = 0;
  std::map<std::string, int> reasons;
  for (const SourceScore& score : scores) {
    if (score.scored > 0 || score.fits.running_rows + score.fits.out_of_memory_rows > 0) return std::nullopt;
    rows += score.rows;
    for (const auto& [reason, count] : skip_reasons(score)) reasons[reason] += count;
  }
  if (input.files.empty() || rows == 0) {
    return fmt::format("{}: no row of a measured run is in there: give a list of rows, or {{\"rows\": [...]}}",
                       fmt::join(arguments.files, ", "));
  }
  const auto most = std::ranges::max_element(reasons, {}, [](const auto& entry) { return entry.second; });
  return fmt::format(
      "{}: none of {} rows could be compared{}", fmt::join(arguments.files, ", "), rows,
      most == reasons.end() ? "; see above what is missing" : fmt::format(", most often because: {}", most->first));
}

/// Refuses options that would be left without effect.
void check_score(const ScoreArguments& arguments) {
  const bool judges = judges_intervals(arguments);
  if (!arguments.holdout.empty() && arguments.fit.empty() && !judges)
    throw UsageError(fmt::format("--holdout {} says what a fit does not see: give --fit, or hold out each-source",
                                 arguments.holdout));
  if (!arguments.error_bars.empty() && !judges)
    throw UsageError("--error-bars writes what is fitted for --holdout each-source: give that, without --fit");
  if (judges && reading_of(arguments) != RowReading::kOfSource)
    throw UsageError(fmt::format(
        "--holdout {} reads rows in every way that it judges: leave --general-rules and --assume-default away",
        arguments.holdout));
}

}  // namespace

int score_verb(const ScoreArguments& arguments) {
  check_score(arguments);
  for (const std::string& path : {arguments.output, arguments.svg, arguments.html, arguments.error_bars}) {
    if (!path.empty()) require_writable(path);
  }
  std::vector<OwnRun> runs;
  for (const std::string& path : arguments.runs) std::ranges::move(read_own_runs(path), std::back_inserter(runs));
  ScoreInput input = score_input(arguments, reading_of(arguments));
  for (const std::string& only : arguments.only) input.library.only.push_back(parse_row_condition(only));
  std::future<std::vector<TimedScore>> timing =
      std::async(std::launch::async, [&] { return timed_scores(input.library.mappings, input.files); });
  const std::vector<SourceScore> scores = score_files(input.library, input.files);
  const std::vector<TimedScore> timed = timing.get();
  const std::optional<FitResult> fit = fit_of(arguments, input);
  const std::optional<LeftOut> left_out = left_out_of(arguments, scores, runs);
  const std::optional<CollectiveScore> collectives = collectives_of(input);
  if (!arguments.output.empty()) {
    write_file(arguments.output,
               score_page(scores, fit, command_of(arguments), left_out ? left_out_page(*left_out, scores) : "") +
                   own_runs_page(runs) + timed_page(timed) + (collectives ? collective_page(*collectives) : ""));
  }
  if (!arguments.svg.empty()) write_file(arguments.svg, source_errors_svg(error_panels(scores, left_out)));
  if (!arguments.html.empty()) write_page(arguments.html, fidelity_page(scores, left_out));
  if (arguments.json) {
    nlohmann::ordered_json answer = score_json(scores, fit);
    answer["collectives"] = collectives ? to_json(*collectives) : nlohmann::ordered_json();
    answer["timed_operations"] = to_json(timed);
    answer["left_out"] = left_out ? to_json(*left_out) : nlohmann::ordered_json();
    print_answer(json_answer(answer));
  } else {
    print_text(score_text(scores, fit, arguments.worst) + (left_out ? left_out_text(*left_out) : "") +
               timed_text(timed) + (collectives ? collective_text(*collectives) : ""));
  }
  if (const auto why = why_none_compared(arguments, input, scores, collectives)) throw InputError(*why);
  return kDone;
}

}}  // namespace plumb::tools
