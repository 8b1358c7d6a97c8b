#include "planner/score/score.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

#include "planner/score/collective_rows.h"
#include "planner/score/fit.h"
#include "planner/score/timed_score.h"
#include "tools/console.h"
#include "tools/files.h"
#include "tools/inputs/score_input.h"
#include "tools/reports/collective_report.h"
#include "tools/reports/own_runs.h"
#include "tools/reports/score_page.h"
#include "tools/reports/score_report.h"
#include "tools/reports/timed_report.h"
#include "tools/verbs/verbs.h"

namespace plumb {
namespace {

/// The command that was given, as the report repeats it.
std::string command_of(const ScoreArguments& arguments) {
  std::string command = "plumb score";
  for (const std::string& file : arguments.files) command += " " + file;
  for (const std::string& table : arguments.tables) command += " --table " + table;
  for (const std::string& runs : arguments.runs) command += " --runs " + runs;
  for (const std::string& set : arguments.set) command += " --set " + set;
  for (const std::string& fit : arguments.fit) command += " --fit " + fit;
  if (!arguments.fit.empty()) command += " --holdout " + arguments.holdout;
  for (const std::string& only : arguments.only) command += " --only '" + only + "'";
  if (!arguments.output.empty()) command += " -o " + arguments.output;
  return command;
}

std::optional<FitResult> fit_of(const ScoreArguments& arguments, const ScoreInput& input) {
  if (arguments.fit.empty()) return std::nullopt;
  std::vector<FitConstant> constants;
  for (const std::string& text : arguments.fit) constants.push_back(parse_fit_constant(text));
  return fit_constants(input.library, input.files, constants, parse_holdout(arguments.holdout));
}

/// Rows of collectives against NCCL's model of the cluster presets; nothing where there are none.
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

}  // namespace

int score_verb(const ScoreArguments& arguments) {
  for (const std::string& path : {arguments.output, arguments.svg}) {
    if (!path.empty()) require_writable(path);
  }
  std::vector<OwnRun> runs;
  for (const std::string& path : arguments.runs) std::ranges::move(read_own_runs(path), std::back_inserter(runs));
  ScoreInput input = score_input(arguments.files, arguments.set, arguments.tables, arguments.mappings);
  for (const std::string& only : arguments.only) input.library.only.push_back(parse_row_condition(only));
  std::vector<SourceScore> scores;
  for (const PublishedRows& published : input.files) scores.push_back(score_rows(input.library, published));
  const std::optional<FitResult> fit = fit_of(arguments, input);
  const std::optional<CollectiveScore> collectives = collectives_of(input);
  const std::vector<TimedScore> timed = timed_scores(input.library.mappings, input.files);
  if (!arguments.output.empty()) {
    write_file(arguments.output, score_page(scores, fit, command_of(arguments)) + own_runs_page(runs) +
                                     timed_page(timed) + (collectives ? collective_page(*collectives) : ""));
  }
  if (!arguments.svg.empty()) write_file(arguments.svg, score_scatter(scores));
  if (arguments.json) {
    nlohmann::ordered_json answer = score_json(scores, fit);
    answer["collectives"] = collectives ? to_json(*collectives) : nlohmann::ordered_json();
    answer["timed_operations"] = to_json(timed);
    print_answer(answer.dump(2) + "\n");
  } else {
    print_answer(score_text(scores, fit, arguments.worst) + timed_text(timed) +
                 (collectives ? collective_text(*collectives) : ""));
  }
  return kDone;
}

}  // namespace plumb
