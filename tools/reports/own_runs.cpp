#include "tools/reports/own_runs.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/strict_json.h"
#include "tools/io/files.h"

namespace plumb { inline namespace tools {
namespace {

class Answer {
 public:
  Answer(const nlohmann::json& json, std::string place) : json_(json), place_(std::move(place)) {
    if (!json.is_object()) throw InputError(fmt::format("{}: this is no answer of `plumb validate --json`", place_));
  }

  Answer part(const char* key) const { return {at(key), fmt::format("{}.{}", place_, key)}; }

  std::string text(const char* key) const {
    if (!at(key).is_string()) throw refusal(key, "text");
    return at(key).get<std::string>();
  }

  const nlohmann::json& json() const { return json_; }

  double positive(const char* key) const {
    if (!at(key).is_number() || !(at(key).get<double>() > 0)) throw refusal(key, "a number above 0");
    return at(key).get<double>();
  }

 private:
  const nlohmann::json& at(const char* key) const {
    if (!json_.contains(key)) throw refusal(key, "there");
    return json_[key];
  }
  InputError refusal(const char* key, const char* wanted) const {
    return InputError(fmt::format("{}: {} is not {}: write the file by `plumb validate --json`", place_, key, wanted));
  }

  const nlohmann::json& json_;
  std::string place_;
};

/// Returns the peaks of the ranks that measured theirs.
std::vector<std::pair<double, double>> peaks_of(const nlohmann::json& json) {
  std::vector<std::pair<double, double>> peaks;
  const auto ranks = json.find("ranks");
  if (ranks == json.end() || !ranks->is_array()) return peaks;
  for (const nlohmann::json& rank : *ranks) {
    if (!rank.is_object()) continue;
    const auto bytes = [&](const char* key) {
      const auto found = rank.find(key);
      return found != rank.end() && found->is_number() ? found->get<double>() : 0;
    };
    const double predicted = bytes("predicted_peak_bytes"), measured = bytes("measured_peak_bytes");
    if (predicted > 0 && measured > 0) peaks.emplace_back(predicted, measured);
  }
  return peaks;
}

OwnRun run_of(const Answer& answer) {
  const Answer step = answer.part("step_time"), interval = answer.part("step_time_interval");
  return {.title = answer.text("title"),
          .date = answer.text("date"),
          .load = answer.text("load"),
          .steps = static_cast<int>(std::min(answer.positive("steps"), 1e9)),
          .predicted_s = step.positive("predicted_s"),
          .measured_s = step.positive("measured_s"),
          .low_s = interval.positive("low_s"),
          .high_s = interval.positive("high_s"),
          .confidence_ratio = interval.positive("confidence_ratio"),
          .fastest_s = answer.positive("fastest_step_s"),
          .slowest_s = answer.positive("slowest_step_s"),
          .peaks = peaks_of(answer.json())};
}

double error_pct(double predicted, double measured) {
  return 100 * (predicted / measured - 1);
}

}  // namespace

std::vector<OwnRun> read_own_runs(const std::string& path) {
  const nlohmann::json file = parse_json(read_text_file(path), path);
  std::vector<OwnRun> runs;
  if (file.is_array()) {
    for (const nlohmann::json& entry : file)
      runs.push_back(run_of({entry, fmt::format("{}: [{}]", path, runs.size())}));
  } else {
    runs.push_back(run_of({file, path}));
  }
  for (OwnRun& run : runs) run.file = std::filesystem::path(path).filename().string();
  return runs;
}

std::string own_runs_page(const std::vector<OwnRun>& runs) {
  if (runs.empty()) return "";
  std::string page =
      "\n## Plumb's own runs\n\nPredicted first, then run, by `plumb validate`: the median step, the interval in which "
      "the median lies, and the fastest and the slowest step.\n\n"
      "| run | predicted, ms | measured, ms | of | error, % | with confidence, % | fastest, slowest, ms | date | "
      "beside |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const OwnRun& run : runs)
    page += fmt::format(
        "| {} | {:.1f} | {:.1f} | {} | {:+.2f} | {:+.2f} to {:+.2f} ({:.0f} %) | {:.1f}, {:.1f} | {} | {} |\n",
        run.title, 1e3 * run.predicted_s, 1e3 * run.measured_s, run.steps, error_pct(run.predicted_s, run.measured_s),
        error_pct(run.predicted_s, run.high_s), error_pct(run.predicted_s, run.low_s), 100 * run.confidence_ratio,
        1e3 * run.fastest_s, 1e3 * run.slowest_s, run.date, run.load);
  return page;
}

}}  // namespace plumb::tools
