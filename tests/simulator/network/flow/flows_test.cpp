#include "simulator/network/flow/flows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "tests/simulator/network/reference_flows.h"

namespace plumb::test {
namespace {

constexpr double kPicosecond = 1e-12;

/// Returns flows in the order of their starts, which lie within `span_s`.
Scenario random_arrivals(std::uint64_t seed, int flows, int links, double span_s) {
  std::mt19937_64 random(seed);
  const auto number = [&random](std::int64_t below) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(below));
  };
  Scenario scenario;
  for (int l = 0; l < links; ++l) scenario.capacities.push_back(1e9 * static_cast<double>(1 + number(50)));
  for (int f = 0; f < flows; ++f) {
    ReferenceFlow flow{.cap = 1e9 * static_cast<double>(1 + number(50)),
                       .weight = static_cast<double>(1 + number(3)),
                       .start_s = span_s * static_cast<double>(number(1'000'000)) / 1e6,
                       .bytes = 1e6 * static_cast<double>(1 + number(100))};
    const std::int64_t uses = 1 + number(5);
    for (std::int64_t u = 0; u < uses; ++u) {
      const auto link = static_cast<std::int32_t>(number(links));
      const bool there = std::ranges::any_of(flow.uses, [&](const LinkUse& use) { return use.link == link; });
      if (!there) flow.uses.push_back({link, 1});
    }
    scenario.flows.push_back(flow);
  }
  std::ranges::stable_sort(scenario.flows, {}, &ReferenceFlow::start_s);
  return scenario;
}

SimTime alone_time(const ReferenceFlow& flow) {
  return to_sim_time(Seconds{flow.bytes / flow.cap});
}

/// Returns [flow] its end. At every event no link may carry more than its capacity.
std::vector<SimTime> ends_of(const Scenario& scenario) {
  std::vector<Route> routes;
  for (const ReferenceFlow& flow : scenario.flows) routes.push_back({.uses = flow.uses, .weight = flow.weight});
  Flows flows(scenario.capacities, routes);
  std::vector<SimTime> ends(scenario.flows.size());
  std::size_t next = 0;
  for (;;) {
    const std::optional<SimTime> end = flows.next_end();
    const bool more = next < scenario.flows.size();
    const SimTime start = more ? to_sim_time(Seconds{scenario.flows[next].start_s}) : SimTime::max();
    if (!end && !more) return ends;
    if (more && (!end || start < *end)) {
      flows.start({.id = static_cast<std::int32_t>(next),
                   .route = static_cast<std::int32_t>(next),
                   .cap_bytes_per_second = scenario.flows[next].cap,
                   .alone = alone_time(scenario.flows[next])},
                  start);
      ++next;
    } else {
      for (const std::int32_t id : flows.take_ended()) ends[id] = *end;
    }
    const std::vector<double> carried = flows.link_rates();
    for (std::size_t l = 0; l < carried.size(); ++l) REQUIRE(carried[l] <= scenario.capacities[l] * (1 + 1e-9));
  }
}

const std::vector<Route> kOneLink{{.uses = {{0, 1}}}};

}  // namespace

TEST_SUITE("flows") {
  TEST_CASE("a flow alone takes exactly its own time") {
    for (const std::int64_t picoseconds : {1LL, 7LL, 320'000'001LL, 999'999'999'999'989LL}) {
      Flows flows({50e9}, kOneLink);
      flows.start({.id = 3, .cap_bytes_per_second = 50e9, .alone = SimTime{picoseconds}}, SimTime{11});
      CHECK(flows.next_end() == SimTime{11 + picoseconds});
      CHECK(flows.take_ended() == std::vector<std::int32_t>{3});
      CHECK(!flows.next_end());
    }
  }

  TEST_CASE("16 MB beside 1 GB on a link of 50 GB/s take 0.64 ms, and the gigabyte 0.32 ms more than alone") {
    Flows flows({50e9}, kOneLink);
    flows.start({.id = 0, .cap_bytes_per_second = 50e9, .alone = SimTime{20'000'000'000}}, SimTime{0});
    flows.start({.id = 1, .cap_bytes_per_second = 50e9, .alone = SimTime{320'000'000}}, SimTime{0});
    CHECK(flows.next_end() == SimTime{640'000'000});
    CHECK(flows.take_ended() == std::vector<std::int32_t>{1});
    CHECK(flows.next_end() == SimTime{20'320'000'000});
  }

  TEST_CASE("flows that end together are taken in the order of their starts") {
    Flows flows({50e9, 50e9}, {{.uses = {{0, 1}}}, {.uses = {{1, 1}}}});
    for (const std::int32_t id : {5, 2, 9, 1}) {
      flows.start({.id = id, .route = id % 2, .cap_bytes_per_second = 50e9, .alone = SimTime{100}}, SimTime{0});
    }
    CHECK(flows.next_end() == SimTime{100});
    CHECK(flows.take_ended() == std::vector<std::int32_t>{2});
    CHECK(flows.next_end() == SimTime{300});  // three share link 1
    CHECK(flows.take_ended() == std::vector<std::int32_t>{5, 9, 1});
    CHECK(flows.in_flight() == 0);
  }

  TEST_CASE("a flow that leaves gives its part of the link to those that stay") {
    Flows flows({1e12}, kOneLink);  // a byte a picosecond
    flows.start({.id = 0, .cap_bytes_per_second = 1e12, .alone = SimTime{1000}}, SimTime{0});
    flows.start({.id = 1, .cap_bytes_per_second = 1e12, .alone = SimTime{100}}, SimTime{500});
    CHECK(flows.next_end() == SimTime{700});  // 100 bytes at half the rate
    flows.take_ended();
    CHECK(flows.next_end() == SimTime{1100});  // 500 + 100 done by then, 400 left at the full rate
  }

  TEST_CASE("random scenarios end when the full recomputation says") {
    struct Size {
      int flows, links;
      double span_s;
    };
    // Spans that keep few and many in flight at once.
    for (const Size& size : {Size{50, 20, 0.001}, Size{50, 20, 0.2}, Size{200, 40, 0.05}, Size{400, 200, 0.01}}) {
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const Scenario scenario = random_arrivals(seed, size.flows, size.links, size.span_s);
        const std::vector<SimTime> ends = ends_of(scenario);
        const std::vector<double> reference = reference_ends(scenario.capacities, scenario.flows);
        for (std::size_t f = 0; f < ends.size(); ++f) {
          // Ours stand on whole picoseconds; the reference's doubles lose less than that.
          REQUIRE(std::abs(to_seconds(ends[f]).count() - reference[f]) <=
                  size.flows * kPicosecond + 1e-8 * reference[f]);
        }
      }
    }
  }

  TEST_CASE("2000 flows over 100 links end when the full recomputation says") {
    const Scenario scenario = random_arrivals(7, 2000, 100, 2.0);
    const std::vector<SimTime> ends = ends_of(scenario);
    const std::vector<double> reference = reference_ends(scenario.capacities, scenario.flows);
    for (std::size_t f = 0; f < ends.size(); ++f) {
      REQUIRE(std::abs(to_seconds(ends[f]).count() - reference[f]) <= 2000 * kPicosecond + 1e-8 * reference[f]);
    }
  }

  TEST_CASE("what crosses a link over time is what its flows have to carry") {
    const Scenario scenario = random_arrivals(11, 200, 20, 0.05);
    std::vector<Route> routes;
    for (const ReferenceFlow& flow : scenario.flows) routes.push_back({.uses = flow.uses, .weight = flow.weight});
    Flows flows(scenario.capacities, routes);
    std::vector<double> carried(scenario.capacities.size(), 0.0);
    std::vector<double> due(scenario.capacities.size(), 0.0);
    for (std::size_t f = 0; f < scenario.flows.size(); ++f) {
      const ReferenceFlow& flow = scenario.flows[f];
      flows.start({.id = static_cast<std::int32_t>(f),
                   .route = static_cast<std::int32_t>(f),
                   .cap_bytes_per_second = flow.cap,
                   .alone = alone_time(flow)},
                  SimTime{0});
      for (const LinkUse& use : flow.uses) due[use.link] += use.share * flow.bytes;
    }
    SimTime now{0};
    while (const std::optional<SimTime> end = flows.next_end()) {
      const std::vector<double> rates = flows.link_rates();
      for (std::size_t l = 0; l < rates.size(); ++l) carried[l] += rates[l] * to_seconds(*end - now).count();
      now = *end;
      flows.take_ended();
    }
    for (std::size_t l = 0; l < due.size(); ++l) {
      // A flow holds its rate to the end of the picosecond in which it ends: 200 of them at 50 GB/s.
      CHECK(std::abs(carried[l] - due[l]) <= 200 * 50e9 * kPicosecond + 1e-9 * due[l]);
    }
  }

  TEST_CASE("the same scenario gives the same ends") {
    const Scenario scenario = random_arrivals(5, 300, 30, 0.05);
    CHECK(ends_of(scenario) == ends_of(scenario));
  }
}

}  // namespace plumb::test
