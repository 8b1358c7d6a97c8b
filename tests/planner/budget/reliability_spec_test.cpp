#include "planner/budget/reliability_spec.h"

#include <cmath>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/budget/reliability_presets.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

nlohmann::json one() {
  return {{"name", "one"},
          {"source", "none"},
          {"observed", {{"devices", 10}, {"days", 5}}},
          {"interruptions", {{"GPU", 6}, {"NIC", 4}}},
          {"restart_min", {{"value", 2}, {"source", "mine"}}},
          {"repair_hours", {{"value", 24}, {"source", "mine"}}},
          {"storage_gb_per_s_per_node", {{"value", 0.5}, {"source", "mine"}}}};
}

}  // namespace

TEST_CASE("rates are interruptions by device and hour, and figures are SI with their sources") {
  const ReliabilitySpec spec = parse_reliability(one().dump(), "one");
  REQUIRE(spec.components.size() == 2);
  CHECK(spec.components[0].name == "GPU");
  CHECK(spec.components[0].per_device_hour == doctest::Approx(6.0 / (10 * 5 * 24)));
  CHECK(spec.restart_seconds.value == 120);
  CHECK(spec.repair_seconds.value == 24 * 3600);
  CHECK(spec.storage_bytes_per_second_per_node.value == 0.5e9);
  CHECK(spec.storage_bytes_per_second_per_node.source == "mine");
  // 10 devices had 10 interruptions in 5 days.
  CHECK(mean_time_between_interruptions(spec, 10).count() == doctest::Approx(12 * 3600));
  CHECK(mean_time_between_interruptions(spec, 20).count() == doctest::Approx(6 * 3600));
}

TEST_CASE("a training whose components never fail is never interrupted") {
  CHECK(std::isinf(mean_time_between_interruptions({}, 1000).count()));
  ReliabilitySpec spec;
  spec.components = one_component(5000);
  CHECK(mean_time_between_interruptions(spec, 10).count() == doctest::Approx(500 * 3600));
}

TEST_CASE("presets give the interruptions that their sources count") {
  // Llama Team 2024: 419 unexpected interruptions in 54 days on 16,384 devices.
  const Seconds of_llama = mean_time_between_interruptions(preset_reliability("llama-3"), 16384);
  CHECK(of_llama.count() == doctest::Approx(54 * 86400.0 / 419));
  // Kokolis et al. 2025 project 1.8 hours for 16,384 devices, and 0.23 hours for 131,072.
  const ReliabilitySpec rsc = preset_reliability("rsc-1");
  CHECK(std::abs(mean_time_between_interruptions(rsc, 16384).count() / 3600 - 1.8) < 0.05);
  CHECK(std::abs(mean_time_between_interruptions(rsc, 131072).count() / 3600 - 0.23) < 0.005);
  for (const ReliabilitySpec& spec : {preset_reliability("llama-3"), rsc}) {
    CHECK(!spec.source.empty());
    for (const SourcedFigure& figure :
         {spec.restart_seconds, spec.repair_seconds, spec.storage_bytes_per_second_per_node})
      CHECK(!figure.source.empty());
  }
}

TEST_CASE("what cannot be is refused with place and key") {
  const auto refused = [](const char* key, const nlohmann::json& value) {
    nlohmann::json json = one();
    json[key] = value;
    check_refused<SpecError>([&] { parse_reliability(json.dump(), "one.json"); }, "one.json", key);
  };
  refused("restart_min", -1);
  refused("restart_min", 2);  // a figure without a source
  refused("interruptions", {{"GPU", -3}});
  refused("observed", {{"devices", 0}, {"days", 5}});
  refused("mtbf", 3);
}

}  // namespace plumb::test
