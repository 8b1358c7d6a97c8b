#include "planner/logs/training_log.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/logs/text_lines.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

/// The form of one framework's lines. If a log has two forms, the one that stands first here counts.
struct LogForm {
  std::string_view framework;
  std::string_view mark;  ///< text that the line of a step has besides the key
  std::string_view key;   ///< text in front of the number
  LogUnit unit = LogUnit::kSeconds;
  double scale = 1;             ///< factor to the unit
  std::string_view memory_key;  ///< text in front of the reserved memory; empty: it is not printed
  double memory_scale = 1;      ///< factor to bytes
  bool is_short = false;        ///< numbers such as 11.5K
  std::string_view batch_key;   ///< text in front of the step's samples; empty: they are not printed
};

constexpr double kMebi = 1024.0 * 1024, kGibi = 1024.0 * 1024 * 1024;
constexpr std::array kForms = {
    LogForm{"Megatron-LM", "consumed samples:", "elapsed time per iteration (ms):", LogUnit::kSeconds, 1e-3,
            "max reserved:", kMebi, false, "global batch size:"},
    LogForm{"Megatron-DeepSpeed", "consumed samples:", "elapsed time per iteration (s):", LogUnit::kSeconds, 1,
            "max reserved:", kMebi, false, "global batch size:"},
    LogForm{"NeMo", "", "train_step_timing in s", LogUnit::kSeconds, 1, "max reserved:", kMebi},
    LogForm{"torchtitan", "loss:", "tps:", LogUnit::kTokensPerSecondOfDevice, 1, "memory:", kGibi},
    LogForm{"nanotron", "iteration:", "elapsed_time_per_iteration_ms:", LogUnit::kSeconds, 1e-3,
            "cuda_max_memory_reserved:", 1, true},
    LogForm{"DeepSpeed", "steps:", "iter time (s):"},
    LogForm{"DeepSpeed", "global_step=", "CurrSamplesPerSec=", LogUnit::kSamplesPerSecond},
    LogForm{"DeepSpeed", "[timer.py", "CurrSamplesPerSec=", LogUnit::kSamplesPerSecond},
    LogForm{"DeepSpeed", "[timer.py", " SamplesPerSec=", LogUnit::kSamplesPerSecond},
    LogForm{"MaxText", "completed step:", "seconds:"},
    LogForm{"Composer", "", "throughput/batches_per_sec:", LogUnit::kStepsPerSecond},
    LogForm{"OLMo", "", "throughput/device/tokens_per_second=", LogUnit::kTokensPerSecondOfDevice},
    LogForm{"torchtune", "loss:", "tokens_per_second_per_gpu:", LogUnit::kTokensPerSecondOfDevice, 1,
            "peak_memory_reserved:", kGibi},
    LogForm{"nanoGPT", "iter ", ", time ", LogUnit::kSeconds, 1e-3},
    LogForm{"the Hugging Face Trainer", "", "train_steps_per_second", LogUnit::kStepsPerSecond},
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Returns the line with each run of blanks as one blank: tables pad their columns.
std::string with_single_blanks(std::string_view line) {
  std::string result;
  for (const char c : line) {
    const bool blank = c == ' ' || c == '\t';
    if (blank && result.ends_with(' ')) continue;
    result += blank ? ' ' : c;
  }
  return result;
}

bool is_step(const LogForm& form, std::string_view line) {
  return contains(line, form.mark.empty() ? form.key : form.mark);
}

/// Returns the number behind the key and the separator between the two.
std::optional<double> value_behind(const LogForm& form, std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t start = std::min(line.find_first_not_of(" =:'\"", at + key.size()), line.size());
  const std::string_view rest = line.substr(start);
  const std::optional<double> value = number_behind(rest, "");
  if (!value || !form.is_short) return value;
  const std::size_t end = std::min(rest.find_first_not_of("0123456789."), rest.size());
  switch (end < rest.size() ? rest[end] : ' ') {
    case 'K':
      return *value * 1e3;
    case 'M':
      return *value * 1e6;
    case 'G':
    case 'B':
      return *value * 1e9;
    default:
      return value;
  }
}

/// Returns why the value of a step cannot be taken; empty if it can.
std::string fault_of(const LogForm& form, const std::optional<double>& value) {
  if (!value) return fmt::format("the step has no \"{}\": the log was cut, copy it whole", form.key);
  if (!(*value > 0)) return fmt::format("\"{}\" is {}: drop the step", form.key, *value);
  return {};
}

}  // namespace

MedianEstimate step_seconds(const TrainingLog& log, const LoggedStep& step) {
  std::vector<double> seconds;
  for (const double value : log.values) {
    const double work = log.unit == LogUnit::kSamplesPerSecond ? static_cast<double>(step.samples)
                        : log.unit == LogUnit::kTokensPerSecondOfDevice
                            ? static_cast<double>(step.tokens) / std::max(1, step.devices)
                            : 1;
    seconds.push_back(log.unit == LogUnit::kSeconds ? value : work / value);
  }
  MedianEstimate estimate = median_of(std::move(seconds));
  estimate.observations = std::max(estimate.observations, static_cast<int>(log.steps));
  return estimate;
}

bool is_training_log(std::string_view text) {
  return std::ranges::any_of(lines_of(text), [](std::string_view padded) {
    const std::string line = with_single_blanks(padded);
    return std::ranges::any_of(kForms,
                               [&](const LogForm& form) { return is_step(form, line) && contains(line, form.key); });
  });
}

std::string training_log_frameworks() {
  std::vector<std::string_view> names;
  for (const LogForm& form : kForms) {
    if (std::ranges::find(names, form.framework) == names.end()) names.push_back(form.framework);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

TrainingLogReader::TrainingLogReader(std::string file) : file_(std::move(file)), found_(kForms.size()) {}

void TrainingLogReader::take(std::string_view padded) {
  const std::string line = with_single_blanks(padded);
  for (std::size_t i = 0; i < kForms.size(); ++i) {
    const LogForm& form = kForms[i];
    Found& found = found_[i];
    if (is_step(form, line)) {
      const std::optional<double> value = value_behind(form, line, form.key);
      const std::string fault = fault_of(form, value);
      found.has_step |= contains(line, form.key);
      if (fault.empty()) {
        found.values.add(*value * form.scale);
      } else if (found.fault.empty()) {
        found.fault = fault, found.fault_line = line_;
      }
      if (const auto batch = form.batch_key.empty() ? std::nullopt : number_behind(line, form.batch_key))
        found.global_batch = static_cast<std::int64_t>(*batch);
    }
    if (form.memory_key.empty()) continue;
    if (const auto memory = value_behind(form, line, form.memory_key))
      found.reserved_bytes = std::max(found.reserved_bytes, *memory * form.memory_scale);
  }
  ++line_;
}

TrainingLog TrainingLogReader::finish() const {
  const auto it = std::ranges::find_if(found_, &Found::has_step);
  if (it == found_.end())
    fail_at_line(file_, 0, fmt::format("the log has no step: give one of {} with some", training_log_frameworks()));
  if (!it->fault.empty()) fail_at_line(file_, it->fault_line, it->fault);
  const LogForm& form = kForms[static_cast<std::size_t>(it - found_.begin())];
  TrainingLog log{.framework = std::string(form.framework),
                  .file = file_,
                  .unit = form.unit,
                  .values = it->values.kept(),
                  .steps = it->values.count(),
                  .global_batch = it->global_batch};
  if (log.values.size() > 1) {
    log.values.erase(log.values.begin());
    --log.steps;
  }
  if (it->reserved_bytes > 0) log.reserved_bytes = static_cast<std::int64_t>(it->reserved_bytes);
  return log;
}

TrainingLog parse_training_log(std::string_view text, const std::string& file) {
  TrainingLogReader reader(file);
  for (const std::string_view line : lines_of(text)) reader.take(line);
  return reader.finish();
}

}}  // namespace plumb::planner
