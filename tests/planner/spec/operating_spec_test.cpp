#include "planner/spec/operating_spec.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "planner/spec/cluster_spec.h"
#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

OperatingSpec operating_of(const nlohmann::json& json) {
  return read_operation(StrictObject(json, "mine.json: operation"));
}

}  // namespace

TEST_CASE("an hour of eight devices costs eight times the price of one") {
  const OperatingSpec operation{.usd_per_device_hour = 2.5};
  CHECK(step_usd(operation, 8, Seconds{3600}) == 20);
  CHECK(step_usd(operation, 8, Seconds{360}) == doctest::Approx(2));
}

TEST_CASE("energy is that of idle devices and what computing adds, times the site's share") {
  OperatingSpec operation{.idle_watts = 100, .busy_watts = 700};
  CHECK(step_joules(operation, 1, Seconds{10}, Seconds{0}) == 1000);
  CHECK(step_joules(operation, 1, Seconds{10}, Seconds{10}) == 7000);
  CHECK(step_joules(operation, 4, Seconds{10}, Seconds{5}) == 4 * (1000 + 3000));
  operation.pue = 1.5;
  CHECK(step_joules(operation, 4, Seconds{10}, Seconds{5}) == 1.5 * 4 * (1000 + 3000));
}

TEST_CASE("what cannot be is refused with the key and the remedy") {
  check_refused<SpecError>(
      [] {
        operating_of({{"idle_w", 800}, {"busy_w", 700}});
      },
      "operation.idle_w", "larger one as busy_w");
  check_refused<SpecError>([] { operating_of({{"busy_w", 700}}); }, "operation.idle_w", "missing");
  check_refused<SpecError>([] { operating_of({{"pue", 0.9}}); }, "operation.pue", "1 or more");
  check_refused<SpecError>([] { operating_of({{"watts", 700}}); }, "operation", "watts");
  CHECK(operating_of({{"usd_per_device_hour", 2}}) == OperatingSpec{.usd_per_device_hour = 2});
}

TEST_CASE("presets that name a price name whose and when") {
  int priced = 0;
  for (const std::string& preset : preset_names("clusters")) {
    const ClusterSpec cluster = preset_cluster(preset);
    if (!cluster.operation.usd_per_device_hour) continue;
    ++priced;
    CHECK(cluster.sources.at("operation.usd_per_device_hour").find("202") != std::string::npos);
  }
  CHECK(priced > 3);
}

}  // namespace plumb::test
