#include "planner/evaluate/error_bar.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "planner/spec/cluster_sites.h"
#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {
namespace {

using ByFramework = std::array<double, kFrameworkKnownCount>;

nlohmann::ordered_json by_framework_json(const ByFramework& values) {
  nlohmann::ordered_json json;
  for (int i = 0; i < kFrameworkKnownCount; ++i) {
    json[std::string(framework_known_name(static_cast<FrameworkKnown>(i)))] = values[static_cast<std::size_t>(i)];
  }
  return json;
}

double number(StrictObject& object, std::string_view key) {
  const nlohmann::json& value = object.raw(key);
  if (!value.is_number()) object.fail(key, "give a number");
  return value.get<double>();
}

ByFramework by_framework(StrictObject object) {
  ByFramework values{};
  for (int i = 0; i < kFrameworkKnownCount; ++i) {
    values[static_cast<std::size_t>(i)] = number(object, framework_known_name(static_cast<FrameworkKnown>(i)));
  }
  object.finish();
  return values;
}

nlohmann::ordered_json scale_json(const ErrorScale& scale) {
  return {{"shift", by_framework_json(scale.shift)},
          {"log_scale", by_framework_json(scale.log_scale)},
          {"fp8", scale.fp8},
          {"experts", scale.experts},
          {"tenfold_doubling", scale.tenfold_doubling},
          {"new_device", scale.new_device},
          {"factor", scale.factor},
          {"rows", scale.rows},
          {"sources", scale.sources}};
}

ErrorScale scale_from(StrictObject object) {
  ErrorScale scale{.shift = by_framework(object.object("shift")),
                   .log_scale = by_framework(object.object("log_scale")),
                   .fp8 = number(object, "fp8"),
                   .experts = number(object, "experts"),
                   .tenfold_doubling = number(object, "tenfold_doubling"),
                   .new_device = number(object, "new_device"),
                   .factor = object.positive_number("factor"),
                   .rows = static_cast<int>(object.non_negative_integer("rows")),
                   .sources = static_cast<int>(object.non_negative_integer("sources"))};
  object.finish();
  return scale;
}

}  // namespace

std::string_view framework_known_name(FrameworkKnown known) {
  constexpr std::array<std::string_view, kFrameworkKnownCount> kNames = {"named", "assumed", "unknown", "own"};
  return kNames[static_cast<std::size_t>(known)];
}

ErrorTraits error_traits(const ModelSpec& model, const ClusterSpec& cluster, const TrainingSpec& training,
                         FrameworkKnown framework) {
  return {.framework = framework,
          .fp8 = is_quantized(training.precision),
          .experts = model.experts > 0,
          .devices = cluster.devices,
          .device = site_count(cluster) == 1 ? cluster.device.name : cluster.name};
}

double log_scale_of(const ErrorScale& scale, const ErrorTraits& traits, bool seen_device) {
  const double base = scale.log_scale[static_cast<std::size_t>(traits.framework)];
  if (traits.framework == FrameworkKnown::kOwn) return base;
  constexpr double kNode = 8, kDoublings = 10;
  const double size = std::log2(std::max(1.0, traits.devices / kNode)) / kDoublings;
  return base + (traits.fp8 ? scale.fp8 : 0) + (traits.experts ? scale.experts : 0) + size * scale.tenfold_doubling +
         (seen_device ? 0 : scale.new_device);
}

PredictionInterval interval_of(double predicted, const ErrorScale& scale, const ErrorTraits& traits, bool seen_device) {
  const double shift = scale.shift[static_cast<std::size_t>(traits.framework)];
  const double half = scale.factor * std::exp(log_scale_of(scale, traits, seen_device));
  return {.low = predicted * std::exp(shift - half), .high = predicted * std::exp(shift + half)};
}

PredictionIntervals intervals_of(const ErrorBars& bars, const ErrorTraits& traits, double step_seconds,
                                 double memory_bytes) {
  const bool seen = std::ranges::find(bars.seen_devices, traits.device) != bars.seen_devices.end();
  return {.step_time = interval_of(step_seconds, bars.step_time, traits, seen),
          .memory = interval_of(memory_bytes, bars.memory, traits, seen)};
}

ErrorBars error_bars_from_json(const nlohmann::json& json, const std::string& place) {
  StrictObject object(json, place);
  ErrorBars bars{.step_time = scale_from(object.object("step_time")), .memory = scale_from(object.object("memory"))};
  const nlohmann::json& devices = object.raw("seen_devices");
  if (!devices.is_array()) object.fail("seen_devices", "give a list of devices' names");
  for (const nlohmann::json& device : devices) {
    if (!device.is_string()) object.fail("seen_devices", "give a list of devices' names");
    bars.seen_devices.push_back(device.get<std::string>());
  }
  object.finish();
  return bars;
}

nlohmann::ordered_json to_json(const ErrorBars& bars) {
  return {{"step_time", scale_json(bars.step_time)},
          {"memory", scale_json(bars.memory)},
          {"seen_devices", bars.seen_devices}};
}

}}  // namespace plumb::planner
