#include "planner/calibrate/training_log.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/calibrate/text_lines.h"
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
};

constexpr double kMebi = 1024.0 * 1024, kGibi = 1024.0 * 1024 * 1024;
constexpr std::array kForms = {
    LogForm{"Megatron-LM", "consumed samples:", "elapsed time per iteration (ms):", LogUnit::kSeconds, 1e-3,
            "max reserved:", kMebi},
    LogForm{"Megatron-DeepSpeed", "consumed samples:", "elapsed time per iteration (s):", LogUnit::kSeconds, 1,
            "max reserved:", kMebi},
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

/// Returns the form of which a line has both the mark and the key; null if there is none.
const LogForm* form_of(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : lines_of(text)) lines.push_back(with_single_blanks(line));
  const auto it = std::ranges::find_if(kForms, [&](const LogForm& form) {
    return std::ranges::any_of(
        lines, [&](const std::string& line) { return is_step(form, line) && contains(line, form.key); });
  });
  return it == kForms.end() ? nullptr : &*it;
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

/// Returns the value of a step's line, which must be there.
double value_of(const LogForm& form, std::string_view line, const std::string& file, std::size_t number) {
  const std::optional<double> value = value_behind(form, line, form.key);
  if (!value)
    fail_at_line(file, number, fmt::format("the step has no \"{}\": the log was cut, copy it whole", form.key));
  if (!(*value > 0)) fail_at_line(file, number, fmt::format("\"{}\" is {}: drop the step", form.key, *value));
  return *value * form.scale;
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

MedianEstimate step_seconds(const TrainingLog& log, const LoggedStep& step) {
  std::vector<double> seconds;
  for (const double value : log.values) {
    const double work = log.unit == LogUnit::kSamplesPerSecond ? static_cast<double>(step.samples)
                        : log.unit == LogUnit::kTokensPerSecondOfDevice
                            ? static_cast<double>(step.tokens) / std::max(1, step.devices)
                            : 1;
    seconds.push_back(log.unit == LogUnit::kSeconds ? value : work / value);
  }
  return median_of(std::move(seconds));
}

bool is_training_log(std::string_view text) {
  return form_of(text) != nullptr;
}

std::string training_log_frameworks() {
  std::vector<std::string_view> names;
  for (const LogForm& form : kForms) {
    if (std::ranges::find(names, form.framework) == names.end()) names.push_back(form.framework);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

TrainingLog parse_training_log(std::string_view text, const std::string& file) {
  const LogForm* form = form_of(text);
  if (form == nullptr) {
    fail_at_line(file, 0, fmt::format("the log has no step: give one of {} with some", training_log_frameworks()));
  }
  TrainingLog log{.framework = std::string(form->framework), .file = file, .unit = form->unit};
  double reserved = 0;
  const std::vector<std::string_view> lines = lines_of(text);
  for (std::size_t number = 0; number < lines.size(); ++number) {
    const std::string line = with_single_blanks(lines[number]);
    if (is_step(*form, line)) log.values.push_back(value_of(*form, line, file, number));
    if (form->memory_key.empty()) continue;
    if (const auto memory = value_behind(*form, line, form->memory_key))
      reserved = std::max(reserved, *memory * form->memory_scale);
  }
  if (log.values.size() > 1) log.values.erase(log.values.begin());
  if (reserved > 0) log.reserved_bytes = static_cast<std::int64_t>(reserved);
  return log;
}

}}  // namespace plumb::planner
