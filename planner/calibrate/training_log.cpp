#include "planner/calibrate/training_log.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "planner/calibrate/text_lines.h"
#include "schedules/error.h"

namespace plumb {
namespace {

constexpr std::string_view kMegatronStep = "elapsed time per iteration (ms):";
constexpr std::string_view kNemoStep = "train_step_timing in s";  // followed by = or :

[[noreturn]] void fail(const std::string& file, std::size_t line, const std::string& message) {
  throw SpecError(fmt::format("{}:{}: {}", file, line + 1, message));
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The value of a step's line, which must be there.
double value_of(std::string_view line, std::string_view key, const std::string& file, std::size_t number) {
  const std::optional<double> value = number_behind(line, key);
  if (!value) fail(file, number, fmt::format("the step has no \"{}\": the log was cut, copy it whole", key));
  if (!(*value > 0)) fail(file, number, fmt::format("\"{}\" is {}: drop the step", key, *value));
  return *value;
}

}  // namespace

MedianEstimate median_of(std::vector<double> values) {
  if (values.empty()) return {};
  constexpr double kMedianOverMean = 1.2533;  // sqrt(pi / 2)
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  MedianEstimate estimate{.observations = static_cast<int>(values.size())};
  estimate.value = (values[middle] + values[values.size() % 2 == 1 ? middle : middle - 1]) / 2;
  if (values.size() > 1) estimate.standard_error = kMedianOverMean * std::sqrt(squares / (count - 1) / count);
  return estimate;
}

MedianEstimate step_seconds(const TrainingLog& log, std::int64_t tokens, int devices) {
  if (log.stack == TrainingLog::Stack::kMegatron) return median_of(log.step_seconds);
  std::vector<double> seconds;
  for (const double rate : log.tokens_per_second) seconds.push_back(static_cast<double>(tokens) / devices / rate);
  return median_of(std::move(seconds));
}

bool is_training_log(std::string_view text) {
  return contains(text, kMegatronStep) || contains(text, kNemoStep) ||
         (contains(text, "step:") && contains(text, "tps:"));
}

TrainingLog parse_training_log(std::string_view text, const std::string& file) {
  constexpr double kMega = 1024.0 * 1024, kGiga = 1024.0 * 1024 * 1024;
  TrainingLog log{.file = file};
  if (!contains(text, kMegatronStep) && !contains(text, kNemoStep)) log.stack = TrainingLog::Stack::kTorchtitan;
  std::vector<double>& values = log.stack == TrainingLog::Stack::kMegatron ? log.step_seconds : log.tokens_per_second;
  double reserved = 0;
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t number = 0; number < lines.size(); ++number) {
    const std::string_view line = lines[number];
    if (log.stack == TrainingLog::Stack::kMegatron) {
      if (contains(line, "iteration") && contains(line, "consumed samples:"))
        values.push_back(value_of(line, kMegatronStep, file, number) / 1e3);
      if (const std::size_t at = line.find(kNemoStep); at != std::string_view::npos) {
        const std::string key =
            std::string(kNemoStep) + (line.substr(at + kNemoStep.size()).starts_with('=') ? "=" : ":");
        values.push_back(value_of(line, key, file, number));
      }
      if (const auto megabytes = number_behind(line, "max reserved:"))
        reserved = std::max(reserved, *megabytes * kMega);
    } else if (contains(line, "step:") && contains(line, "loss:")) {
      values.push_back(value_of(line, "tps:", file, number));
      if (const auto gibibytes = number_behind(line, "memory:")) reserved = std::max(reserved, *gibibytes * kGiga);
    }
  }
  if (values.empty()) fail(file, 0, "the log has no step: give one of Megatron-LM, NeMo or torchtitan with some");
  if (values.size() > 1) values.erase(values.begin());
  if (reserved > 0) log.reserved_bytes = static_cast<std::int64_t>(reserved);
  return log;
}

}  // namespace plumb
