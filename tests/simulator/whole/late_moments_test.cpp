#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <random>
#include <string>

#include "schedules/generators/generators.h"
#include "simulator/engine/engine.h"
#include "simulator/network/simulate_network.h"
#include "simulator/noise/noise.h"
#include "simulator/steady_state.h"
#include "tests/simulator/network/networks.h"
#include "tests/simulator/support.h"

namespace plumb::test {
namespace {

/// Returns the text that `simulate` throws, or "" if it throws nothing.
template <typename Simulate>
std::string refusal_of(Simulate simulate) {
  try {
    simulate();
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

bool refuses(const std::string& message) {
  return message.find("that can be simulated") != std::string::npos ||
         message.find("cannot be simulated") != std::string::npos;
}

/// Returns costs that are all that many times as long.
CostTable times_as_long(CostTable costs, double factor) {
  for (StageCosts& stage : costs.stages) {
    for (SegmentsByPart& parts : stage.segments) {
      for (auto& segments : parts) {
        for (Segment& segment : segments) segment.seconds *= factor;
      }
    }
  }
  for (auto& [ends, link] : costs.links) {
    link.latency *= factor;
    link.bytes_per_second /= factor;
  }
  return costs;
}

/// Returns the makespan, or nothing where it is refused because it is too late. Both bubbles must be shares.
std::optional<SimTime> makespan_of(const Schedule& schedule, const CostTable& costs, const NetworkSpec& network) {
  try {
    const Simulation result = simulate(schedule, costs, network);
    REQUIRE(result.makespan >= SimTime{0});
    REQUIRE(result.makespan <= kLatestMoment);
    for (const double bubble : {result.bubble_ratio, result.span_bubble_ratio}) {
      REQUIRE(bubble >= 0);
      REQUIRE(bubble <= 1);
    }
    for (const SimTime busy : result.busy) REQUIRE(busy <= result.makespan);
    return result.makespan;
  } catch (const SpecError& error) {
    REQUIRE(refuses(error.what()));
    return std::nullopt;
  }
}

}  // namespace

TEST_SUITE("unit") {
  TEST_CASE("no engine tells a moment beyond the latest: it refuses, with what takes most of the time and a remedy") {
    // 67 forwards and backwards of 300,000 s in a row are 2e7 s, far above the 4.6e6 s.
    const Schedule schedule = lowered("gpipe", 4, 64);
    const CostTable costs = whole_costs(4, 1e5, 2e5);
    const std::string message = refusal_of([&] { simulate(schedule, costs); });
    CHECK(message ==
          "the step would end after the 4.61e+06 s that can be simulated, most of it B of stage 3: give shorter costs, "
          "as in a smaller unit, or fewer micro-batches");
    const std::string hops = refusal_of([&] { simulate(lowered("naive", 4, 1), whole_costs(4, 1, 1, 2e6)); });
    CHECK(hops.find("most of it SEND_F of stage 0") != std::string::npos);
    CHECK(refuses(refusal_of([&] { simulate(schedule, costs, {.record_timeline = false}); })));
    CHECK(refuses(refusal_of([&] { simulate(schedule, costs, {.burst_bytes = 1}); })));
    CHECK(refuses(refusal_of([&] { simulate(schedule, costs, one_trunk(schedule, 1)); })));
    CHECK(refuses(refusal_of([&] { simulate_noise(schedule, costs, NoiseSpec{.runs = 2}); })));
  }

  TEST_CASE("long sums over ranks are no reason to refuse: only a late moment is") {
    // 256 ranks compute for 30,720 s each: 7.9e6 s together, above the 4.6e6 s.
    const Schedule schedule = lowered("1f1b", 256, 1024);
    const CostTable costs = whole_costs(256, 10, 20);
    CHECK(simulate(schedule, costs, {.record_timeline = false}).makespan == (1024 + 255) * 30 * kSecond);
  }

  TEST_CASE("the steady state of a run that ends too late is not extended past the latest moment") {
    const auto repeating = [](int microbatches) {
      return RepeatingSchedule{
          .lowered = [](int m) { return lowered("1f1b", 2, m); }, .microbatches = microbatches, .period = 1};
    };
    const CostTable costs = whole_costs(2, 10, 20);
    CHECK(simulate_repeating(repeating(100'000), costs).makespan == 100'001 * 30 * kSecond);
    CHECK(refuses(refusal_of([&] { simulate_repeating(repeating(1'000'000), costs); })));
  }

  TEST_CASE("what a slow rank or a narrow link lasts is refused with its speed or its name") {
    const Schedule schedule = lowered("1f1b", 2, 4);
    CostTable costs = whole_costs(2, 1, 2);
    const NetworkSpec slow{.speeds = {1e-7, 1}};
    CHECK(refusal_of([&] { simulate(schedule, costs, slow); }).find("with a rank at 1e-07 of its speed") !=
          std::string::npos);
    for (StageCosts& stage : costs.stages) stage.activation_message_bytes = stage.gradient_message_bytes = 1000;
    costs.default_link.bytes_per_second = 1e9;
    CHECK(refusal_of([&] { simulate(schedule, costs, one_trunk(schedule, 1e-15)); }).find("on link trunk") !=
          std::string::npos);
  }

  TEST_CASE("noise that makes a step too late is refused, however far its factors go") {
    const Schedule schedule = lowered("1f1b", 2, 4);
    const CostTable costs = whole_costs(2, 2e5, 4e5);
    CHECK(simulate(schedule, costs).makespan == 3'000'000 * kSecond);
    CHECK(refuses(refusal_of([&] { simulate_noise(schedule, costs, NoiseSpec{.cv = 1, .rank_cv = 1, .runs = 300}); })));
  }

  TEST_CASE("schedules made for costs refuse those under which they would end too late") {
    const auto made = [](const char* name, double seconds) {
      const ChunkCosts chunk{.forward = {Seconds{seconds}}, .input_grad = {Seconds{1.25 * seconds}}};
      return refusal_of([&] { make_schedule(name, {.ranks = 4, .microbatches = 16, .costs = chunk}); });
    };
    for (const char* name : {"zb-auto", "zb-v"}) {
      CHECK(made(name, 1e4) == "");
      CHECK(refuses(made(name, 1.3e5)));
      CHECK(refuses(made(name, 2e6)));
    }
  }
}

TEST_SUITE("property") {
  TEST_CASE("slower never helps, and bubbles are shares, up to the latest moment") {
    std::mt19937_64 random(7);
    int told = 0, refused = 0;
    for (const Schedule& schedule : all_lowered(4, 8, 1)) {
      const auto ranks = schedule.ranks.size();
      for (int seed = 1; seed <= 6; ++seed) {
        // 1 ns to some 10^7 s a step
        const double scale = std::pow(10, static_cast<double>(random() % 16));
        const CostTable costs = times_as_long(random_costs(schedule, static_cast<std::uint64_t>(seed)), scale);
        NetworkSpec network{.speeds = std::vector<double>(ranks, 1.0)};
        std::optional<SimTime> before = makespan_of(schedule, costs, network);
        for (int slower = 0; slower < 8; ++slower) {
          network.speeds[random() % ranks] *= std::pow(10, -static_cast<double>(random() % 5) / 2);
          const std::optional<SimTime> after = makespan_of(schedule, costs, network);
          if (!before) REQUIRE(!after);
          if (before && after) REQUIRE(*after >= *before);
          ++(after ? told : refused);
          before = after;
        }
        const std::optional<SimTime> longer = makespan_of(schedule, times_as_long(costs, 1.5), {});
        const std::optional<SimTime> as_it_is = makespan_of(schedule, costs, {});
        if (!as_it_is) REQUIRE(!longer);
        if (as_it_is && longer) REQUIRE(*longer >= *as_it_is);
      }
    }
    CHECK(told > 300);
    CHECK(refused > 50);
  }
}

}  // namespace plumb::test
