#include "planner/spec/training_spec.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/strict_json.h"

namespace plumb {
namespace {

constexpr std::array<std::string_view, 3> kPrecisionNames = {"fp32", "bf16", "fp16"};

std::string precision_choice(StrictObject& object, std::string_view key, std::string_view fallback) {
  if (!object.has(key)) return std::string(fallback);
  return object.choice(key, {kPrecisionNames.begin(), kPrecisionNames.end()});
}

}  // namespace

std::string_view precision_name(Precision precision) {
  return kPrecisionNames[static_cast<std::size_t>(precision)];
}

std::int64_t bytes_per_element(Precision precision) {
  return precision == Precision::kFp32 ? 4 : 2;
}

Precision precision_from_name(std::string_view name, std::string_view place) {
  for (std::size_t i = 0; i < kPrecisionNames.size(); ++i) {
    if (kPrecisionNames[i] == name) return static_cast<Precision>(i);
  }
  throw SpecError(fmt::format("{}: there is no precision \"{}\": give fp32, bf16 or fp16", place, name));
}

std::int64_t optimizer_bytes_per_parameter(const TrainingSpec& training) {
  constexpr std::int64_t kMoments = 8;
  constexpr std::int64_t kMasterWeight = 4;
  return training.precision == Precision::kFp32 ? kMoments : kMoments + kMasterWeight;
}

std::int64_t optimizer_traffic_per_parameter(const TrainingSpec& training) {
  constexpr std::int64_t kMomentsAndWeight = 12;
  const std::int64_t gradient = 2 * bytes_per_element(training.gradient_precision);
  const std::int64_t computing_copy =
      training.precision == Precision::kFp32 ? 0 : bytes_per_element(training.precision);
  return gradient + 2 * kMomentsAndWeight + computing_copy;
}

std::int64_t tokens_per_step(const TrainingSpec& training) {
  return training.global_batch * training.sequence;
}

TrainingSpec training_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  constexpr std::int64_t kLargest = 1 << 28;  // sequences or tokens: far beyond any training
  for (const std::string_view key : {"global_batch", "seq"}) {
    if (object.positive_integer(key) > kLargest) object.fail(key, fmt::format("give at most {}", kLargest));
  }
  TrainingSpec training{.global_batch = object.positive_integer("global_batch"),
                        .sequence = object.positive_integer("seq")};
  training.precision = precision_from_name(precision_choice(object, "precision", "bf16"), place);
  training.gradient_precision = precision_from_name(precision_choice(object, "gradient_precision", "fp32"), place);
  if (object.has("optimizer")) object.choice("optimizer", {"adamw"});
  object.finish();
  return training;
}

TrainingSpec parse_training(std::string_view text, const std::string& file) {
  return training_from_json(parse_json(text, file), file);
}

nlohmann::ordered_json to_json(const TrainingSpec& training) {
  return {{"global_batch", training.global_batch},
          {"seq", training.sequence},
          {"precision", precision_name(training.precision)},
          {"gradient_precision", precision_name(training.gradient_precision)},
          {"optimizer", "adamw"}};
}

}  // namespace plumb
