#include "planner/search/break_even.h"

#include <cmath>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "tests/planner/fixtures.h"
#include "tests/planner/refusal.h"

namespace plumb::test {
namespace {

/// GPT-2 on two nodes, whose replicas share gradients over the network.
Plan plan_on_16() {
  return {.model = preset_model("gpt2"),
          .cluster = preset_cluster("h100:16"),
          .training = {.global_batch = 64, .sequence = 1024},
          .layout = {.data = 16}};
}

constexpr const char* kBandwidth = "network.bandwidth_gb_per_s";
const Variation kDepths{.key = "layout.pp", .values = {1, 4}};

/// Returns true if the second depth is faster at that bandwidth.
bool is_second_faster(double bandwidth) {
  const auto rows = whatif(plan_on_16(), {{.key = kBandwidth, .values = {bandwidth}}, kDepths}, {.replan = true});
  return rows[1].prediction->step.makespan < rows[0].prediction->step.makespan;
}

}  // namespace

TEST_CASE("a range is a key, its ends, and whether only whole numbers lie between") {
  const FigureRange real = parse_figure_range("network.latency_us=0.5..20");
  CHECK(real.key == "network.latency_us");
  CHECK(real.low == 0.5);
  CHECK(real.high == 20);
  CHECK(!real.whole);
  CHECK(parse_figure_range("training.global_batch=16..128").whole);
  for (const char* bad : {"", "a", "a=1", "a=5..1", "a=1..", "=1..2", "a=x..2"})
    check_refused<SpecError>([&] { parse_figure_range(bad); }, "break-even", "KEY=LOW..HIGH");
}

TEST_CASE("a pipeline wins on a slow network, and from the break-even on replicas do") {
  const BreakEven found =
      break_even(plan_on_16(), kDepths, {.key = kBandwidth, .low = 0.5, .high = 100}, {.replan = true});
  CHECK(found.faster_at_low == 1);
  REQUIRE(found.crossings.size() == 1);
  const Crossing& crossing = found.crossings.front();
  CHECK(crossing.faster_below == 1);
  CHECK(crossing.faster_above == 0);
  CHECK(!is_second_faster(crossing.value));
  CHECK(is_second_faster(crossing.value * 0.998));
}

TEST_CASE("a range of whole numbers has a whole break-even") {
  const BreakEven found =
      break_even(plan_on_16(), kDepths, {.key = kBandwidth, .low = 1, .high = 100, .whole = true}, {.replan = true});
  for (const Crossing& crossing : found.crossings) {
    CHECK(crossing.value == std::floor(crossing.value));
    CHECK(is_second_faster(crossing.value) == (crossing.faster_above == 1));
    CHECK(is_second_faster(crossing.value - 1) == (crossing.faster_below == 1));
  }
  REQUIRE(!found.crossings.empty());
}

TEST_CASE("what cannot be compared is refused") {
  const FigureRange range{.key = "network.bandwidth_gb_per_s", .low = 5, .high = 50};
  check_refused<SpecError>([&] { break_even(plan_on_16(), parse_variation("layout.mbs=1,2,4"), range); }, "layout.mbs",
                           "give two");
  check_refused<SpecError>([&] { break_even(plan_on_16(), parse_variation("dp=1,2"), range); },
                           "network.bandwidth_gb_per_s", "both plans");
}

}  // namespace plumb::test
