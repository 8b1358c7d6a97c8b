#include "planner/spec/training_spec.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/strict_json.h"
#include "schedules/limits.h"

namespace plumb { inline namespace planner {
namespace {

constexpr std::array<std::string_view, 6> kPrecisionNames = {"fp32", "tf32", "bf16", "fp16", "fp8", "nvfp4"};
constexpr std::array<std::string_view, 5> kOptimizerNames = {"adamw", "adamw-8bit", "adafactor", "lion", "sgd"};

std::int64_t moment_bytes(Optimizer optimizer) {
  constexpr std::array<std::int64_t, 5> kBytes = {8, 2, 0, 4, 4};
  return kBytes[static_cast<std::size_t>(optimizer)];
}

std::string precision_choice(StrictObject& object, std::string_view key, std::string_view fallback) {
  if (!object.has(key)) return std::string(fallback);
  return object.choice(key, {kPrecisionNames.begin(), kPrecisionNames.end()});
}

}  // namespace

bool is_of_own_executor(const TrainingSpec& training) {
  return !training.stack && training.stack_assumed.empty();
}

std::string_view precision_name(Precision precision) {
  return kPrecisionNames[static_cast<std::size_t>(precision)];
}

std::int64_t bytes_per_element(Precision precision) {
  return precision == Precision::kFp32 || precision == Precision::kTf32 ? 4 : 2;
}

bool is_quantized(Precision precision) {
  return precision == Precision::kFp8 || precision == Precision::kNvfp4;
}

double quantized_bytes(Precision precision) {
  constexpr double kScaleOfBlock = 1.0 / 16;  // one byte for 16 elements
  if (precision == Precision::kNvfp4) return 0.5 + kScaleOfBlock;
  return precision == Precision::kFp8 ? 1.0 : static_cast<double>(bytes_per_element(precision));
}

Precision precision_from_name(std::string_view name, std::string_view place) {
  for (std::size_t i = 0; i < kPrecisionNames.size(); ++i) {
    if (kPrecisionNames[i] == name) return static_cast<Precision>(i);
  }
  throw SpecError(
      fmt::format("{}: there is no precision \"{}\": give {}", place, name, fmt::join(kPrecisionNames, ", ")));
}

std::string_view optimizer_name(Optimizer optimizer) {
  return kOptimizerNames[static_cast<std::size_t>(optimizer)];
}

Optimizer optimizer_from_name(std::string_view name, std::string_view place) {
  const auto found = std::ranges::find(kOptimizerNames, name);
  if (found == kOptimizerNames.end()) {
    throw SpecError(
        fmt::format("{}: there is no optimizer \"{}\": give {}", place, name, fmt::join(kOptimizerNames, ", ")));
  }
  return static_cast<Optimizer>(found - kOptimizerNames.begin());
}

std::int64_t optimizer_bytes_per_parameter(const TrainingSpec& training) {
  const std::int64_t master = bytes_per_element(training.precision) < kFp32Bytes ? kFp32Bytes : 0;
  return moment_bytes(training.optimizer) + master;
}

std::int64_t optimizer_traffic_per_parameter(const TrainingSpec& training) {
  const std::int64_t element = bytes_per_element(training.precision);
  const std::int64_t gradient = 2 * bytes_per_element(training.gradient_precision);
  const std::int64_t computing_copy = element < kFp32Bytes ? element : 0;
  return gradient + 2 * (moment_bytes(training.optimizer) + kFp32Bytes) + computing_copy;
}

std::int64_t tokens_per_step(const TrainingSpec& training) {
  return training.global_batch * training.sequence;
}

TrainingSpec training_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  TrainingSpec training{.global_batch = object.positive_integer("global_batch", kMostSequences),
                        .sequence = object.positive_integer("seq", kMostTokens)};
  training.precision = precision_from_name(precision_choice(object, "precision", "bf16"), place);
  training.gradient_precision = precision_from_name(precision_choice(object, "gradient_precision", "fp32"), place);
  if (object.has("optimizer")) {
    const std::string name = object.choice("optimizer", {kOptimizerNames.begin(), kOptimizerNames.end()});
    training.optimizer = optimizer_from_name(name, place);
  }
  if (object.has("stack")) training.stack = stack_from_json(object.raw("stack"), place + ": stack");
  training.stack_assumed = object.text_or("stack_assumed", "");
  object.finish();
  return training;
}

TrainingSpec parse_training(std::string_view text, const std::string& file) {
  return training_from_json(parse_json(text, file), file);
}

nlohmann::ordered_json to_json(const TrainingSpec& training) {
  nlohmann::ordered_json json{{"global_batch", training.global_batch},
                              {"seq", training.sequence},
                              {"precision", precision_name(training.precision)},
                              {"gradient_precision", precision_name(training.gradient_precision)},
                              {"optimizer", optimizer_name(training.optimizer)}};
  if (training.stack) json["stack"] = to_json(*training.stack);
  if (!training.stack_assumed.empty()) json["stack_assumed"] = training.stack_assumed;
  return json;
}

}}  // namespace plumb::planner
