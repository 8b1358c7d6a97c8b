#include "planner/evaluate/error_bar.h"

#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

/// Returns bars whose named frameworks are 10 % wide, assumed ones twice that, and shifted by a tenth.
ErrorBars round_bars() {
  ErrorBars bars{.seen_devices = {"round"}};
  bars.step_time.log_scale = {std::log(0.05), std::log(0.1), std::log(0.2), std::log(0.01)};
  bars.step_time.shift = {0, std::log(1.1), 0, 0};
  bars.step_time.fp8 = std::log(2);
  bars.step_time.experts = std::log(3);
  bars.step_time.tenfold_doubling = std::log(4);
  bars.step_time.new_device = std::log(5);
  bars.step_time.factor = 2;
  bars.memory = bars.step_time;
  return bars;
}

double half_width(const ErrorTraits& traits) {
  const PredictionInterval interval = intervals_of(round_bars(), traits, 1, 1).step_time;
  return std::log(interval.high / interval.low) / 2;
}

}  // namespace

TEST_CASE("an interval is as many scales wide as its factor, around the shift, whatever the unit") {
  const ErrorTraits named{.framework = FrameworkKnown::kNamed, .devices = 8, .device = "round"};
  const PredictionIntervals intervals = intervals_of(round_bars(), named, 3, 5e9);
  CHECK(intervals.step_time.low == doctest::Approx(3 * std::exp(-0.1)));
  CHECK(intervals.step_time.high == doctest::Approx(3 * std::exp(0.1)));
  CHECK(intervals.memory.high == doctest::Approx(5e9 * std::exp(0.1)));
  const ErrorTraits assumed{.framework = FrameworkKnown::kAssumed, .devices = 8, .device = "round"};
  CHECK(intervals_of(round_bars(), assumed, 1, 1).step_time.low == doctest::Approx(1.1 * std::exp(-0.2)));
}

TEST_CASE("each trait widens the interval by its own factor, but not that of Plumb's own executor") {
  ErrorTraits traits{.framework = FrameworkKnown::kNamed, .devices = 8, .device = "round"};
  const double plain = half_width(traits);
  const auto widened = [&](auto change) {
    ErrorTraits other = traits;
    change(other);
    return half_width(other) / plain;
  };
  CHECK(widened([](ErrorTraits& t) { t.fp8 = true; }) == doctest::Approx(2));
  CHECK(widened([](ErrorTraits& t) { t.experts = true; }) == doctest::Approx(3));
  CHECK(widened([](ErrorTraits& t) { t.devices = 8 << 10; }) == doctest::Approx(4));
  CHECK(widened([](ErrorTraits& t) { t.devices = 1; }) == doctest::Approx(1));
  CHECK(widened([](ErrorTraits& t) { t.device = "another"; }) == doctest::Approx(5));
  CHECK(widened([](ErrorTraits& t) { t.framework = FrameworkKnown::kUnknown; }) == doctest::Approx(4));
  traits.framework = FrameworkKnown::kOwn;
  const double own = half_width(traits);
  traits.fp8 = traits.experts = true;
  traits.device = "another";
  CHECK(half_width(traits) == own);
}

TEST_CASE("the traits of a prediction are those of its model, cluster and training") {
  const ErrorTraits traits =
      error_traits(preset_model("mixtral-8x7b"), preset_cluster("h100:64"),
                   {.global_batch = 1, .sequence = 8, .precision = Precision::kFp8}, FrameworkKnown::kAssumed);
  CHECK(traits.experts);
  CHECK(traits.fp8);
  CHECK(traits.devices == 64);
  CHECK(traits.device == preset_cluster("h100").device.name);
}

TEST_CASE("bars are written and read without loss, and the carried ones are such") {
  const ErrorBars bars = round_bars();
  CHECK(error_bars_from_json(to_json(bars), "bars") == bars);
  nlohmann::json broken = to_json(bars);
  broken["step_time"]["fp8"] = "wide";
  check_refused<SpecError>([&] { error_bars_from_json(broken, "bars"); }, "bars: step_time.fp8", "give a number");
  const ErrorBars carried =
      error_bars_from_json(nlohmann::json::parse(source_text("tools/specs/error_bars.json")), "error_bars.json");
  CHECK(carried.step_time.sources > 20);
  const auto width = [&](FrameworkKnown known) {
    const PredictionInterval one =
        intervals_of(carried, {.framework = known, .devices = 64, .device = "H100-SXM"}, 1, 1).step_time;
    return one.high / one.low;
  };
  CHECK(width(FrameworkKnown::kOwn) < width(FrameworkKnown::kNamed));
  CHECK(width(FrameworkKnown::kNamed) < width(FrameworkKnown::kAssumed));
}

}  // namespace plumb::test
