#include "tools/verbs/calibrate/calibrate_from.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/calibrate/fit_cluster.h"
#include "planner/calibrate/gemm_table.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/plan_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

/// Adds the contents of a file. Throws SpecError if the file is none of the logs and tables that are read.
void add_evidence(ClusterEvidence& evidence, const std::string& file) {
  const std::string text = read_text_file(file);
  if (is_nccl_tests_log(text)) {
    evidence.collectives.push_back(parse_nccl_tests_log(text, file));
  } else if (is_training_log(text)) {
    evidence.trainings.push_back(parse_training_log(text, file));
  } else if (is_gemm_table(text)) {
    evidence.gemms.push_back({.file = file, .samples = parse_gemm_table(text, file)});
  } else {
    throw SpecError(
        fmt::format("{}:1: neither an nccl-tests log, nor a table with columns m,n,k, nor a training log with steps "
                    "({}): give one of these",
                    file, training_log_frameworks()));
  }
}

ClusterEvidence read_evidence(const CalibrateArguments& arguments) {
  ClusterEvidence evidence;
  for (const std::string& file : arguments.from)
    read_as(FileKind::kMeasurement, file, [&] { add_evidence(evidence, file); });
  if (!arguments.plan.empty()) evidence.plan = plan_input(arguments.plan);
  return evidence;
}

ClusterSpec base_of(const CalibrateArguments& arguments, const ClusterEvidence& evidence) {
  if (!arguments.base.empty()) return cluster_input(arguments.base);
  if (evidence.plan) return evidence.plan->cluster;
  throw UsageError("--base is missing: name the cluster that was measured, a preset (`plumb clusters`) or a file");
}

std::string error_text(const FittedConstant& constant) {
  if (!constant.standard_error) return "not known";
  const double share = constant.value == 0 ? 0 : 100 * *constant.standard_error / std::abs(constant.value);
  return fmt::format("{:.3g}{}", *constant.standard_error, share > 0 ? fmt::format(" ({:.1f} %)", share) : "");
}

nlohmann::ordered_json to_json(const ClusterFit& fit) {
  nlohmann::ordered_json json{{"cluster", to_json(fit.cluster)}, {"constants", nlohmann::ordered_json::array()}};
  for (const FittedConstant& constant : fit.constants) {
    nlohmann::ordered_json entry{{"path", constant.path}, {"value", constant.value}};
    entry["standard_error"] = nullptr;
    if (constant.standard_error) entry["standard_error"] = *constant.standard_error;
    entry["observations"] = constant.observations;
    entry["residual_pct"] = constant.residual_pct;
    json["constants"].push_back(std::move(entry));
  }
  json["notes"] = fit.notes;
  return json;
}

}  // namespace

int calibrate_from(const CalibrateArguments& arguments, const std::string& date) {
  ClusterEvidence evidence = read_evidence(arguments);
  evidence.date = date;
  const ClusterFit fit = fit_cluster(base_of(arguments, evidence), evidence);
  write_file(arguments.output, json_file_text(with_format(FileForm::kCluster, to_json(fit.cluster))));
  print_note(fmt::format("wrote {}", arguments.output));
  for (const std::string& note : fit.notes) print_note(note);
  if (arguments.json) {
    print_answer(json_answer(to_json(fit)));
    return kDone;
  }
  TextTable table{.head = {"constant", "value", "standard error", "observations", "residual"}};
  for (const FittedConstant& constant : fit.constants) {
    table.rows.push_back({constant.path, fmt::format("{:.4g}", constant.value), error_text(constant),
                          std::to_string(constant.observations), fmt::format("{:.1f} %", constant.residual_pct)});
  }
  print_text(fmt::format("{}, fitted to {} files\n\n{}", fit.cluster.name, arguments.from.size(), to_text(table)));
  return kDone;
}

}}  // namespace plumb::tools
