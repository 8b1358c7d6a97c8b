#include "planner/budget/reliability_spec.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "schedules/forms/strict_json.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

constexpr double kHoursOfDay = 24, kSecondsOfMinute = 60, kSecondsOfHour = 3600;

SourcedFigure figure(StrictObject& object, const char* key, double unit) {
  const SourcedNumber number = object.positive_sourced(key);
  if (number.source.empty())
    object.fail(key, "this figure has no source: write {\"value\": 5, \"source\": \"where it is from\"}");
  return {.value = number.value * unit, .source = number.source};
}

}  // namespace

ReliabilitySpec parse_reliability(std::string_view text, const std::string& file) {
  const nlohmann::json json = parse_json(text, file);
  StrictObject object(json, file);
  ReliabilitySpec spec{.name = object.text("name"), .source = object.text("source")};
  StrictObject observed = object.object("observed");
  const double device_hours =
      static_cast<double>(observed.positive_integer("devices")) * observed.positive_number("days") * kHoursOfDay;
  observed.finish();
  StrictObject counts = object.object("interruptions");
  for (const auto& [name, count] : json.at("interruptions").items())
    spec.components.push_back({.name = name, .per_device_hour = counts.positive_number(name) / device_hours});
  spec.restart_seconds = figure(object, "restart_min", kSecondsOfMinute);
  spec.repair_seconds = figure(object, "repair_hours", kSecondsOfHour);
  spec.storage_bytes_per_second_per_node = figure(object, "storage_gb_per_s_per_node", kGiga);
  object.finish();
  return spec;
}

std::vector<FailingComponent> one_component(double hours) {
  return {{.name = "any", .per_device_hour = 1 / hours}};
}

Seconds mean_time_between_interruptions(const ReliabilitySpec& spec, int devices) {
  double per_hour = 0;
  for (const FailingComponent& component : spec.components) per_hour += component.per_device_hour * devices;
  return Seconds{per_hour > 0 ? kSecondsOfHour / per_hour : std::numeric_limits<double>::infinity()};
}

}}  // namespace plumb::planner
