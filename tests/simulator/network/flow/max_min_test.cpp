#include "simulator/network/flow/max_min.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/simulator/network/reference_flows.h"

namespace plumb::test {
namespace {

std::vector<double> rates_of(const std::vector<double>& capacities, const std::vector<ReferenceFlow>& flows) {
  MaxMinProblem problem{.capacities = capacities};
  for (const ReferenceFlow& flow : flows) add_flow(problem, flow.cap, flow.weight, flow.uses);
  return MaxMinSolver().solve(problem);
}

Scenario random_scenario(std::uint64_t seed, int flows, int links) {
  std::mt19937_64 random(seed);
  const auto number = [&random](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  Scenario scenario;
  for (int l = 0; l < links; ++l) scenario.capacities.push_back(1e9 * (1 + number(50)));
  for (int f = 0; f < flows; ++f) {
    ReferenceFlow flow{.cap = 1e8 * (1 + number(500)), .weight = 1.0 + number(4)};
    const int uses = 1 + number(5);
    for (int u = 0; u < uses; ++u) {
      const int link = number(links);
      const bool there = std::ranges::any_of(flow.uses, [&](const LinkUse& use) { return use.link == link; });
      if (!there) flow.uses.push_back({link, 0.25 * (1 + number(8))});
    }
    scenario.flows.push_back(flow);
  }
  return scenario;
}

}  // namespace

TEST_SUITE("max_min") {
  TEST_CASE("two flows on one link have half of it each, whatever more they could do alone") {
    const std::vector<LinkUse> link{{0, 1}};
    CHECK(rates_of({50e9}, {{link, 50e9}, {link, 40e9}}) == std::vector<double>{25e9, 25e9});
  }

  TEST_CASE("what a slow flow leaves goes to the others") {
    const std::vector<LinkUse> link{{0, 1}};
    CHECK(rates_of({50e9}, {{link, 10e9}, {link, 50e9}}) == std::vector<double>{10e9, 40e9});
  }

  TEST_CASE("rates rise in proportion to the weights, and a flow that crosses a link twice pays twice") {
    const std::vector<LinkUse> once{{0, 1}};
    CHECK(rates_of({60e9}, {{once, 60e9, 1}, {once, 60e9, 3}}) == std::vector<double>{15e9, 45e9});
    CHECK(rates_of({60e9}, {{once, 60e9}, {{{0, 2}}, 60e9}}) == std::vector<double>{20e9, 20e9});
  }

  TEST_CASE("the parking lot: the long flow has its share of the worst link, the short ones the rest of theirs") {
    // Bertsekas and Gallager's example: link 0 is shared by three, link 1 by two.
    const std::vector<double> rates =
        rates_of({3e9, 10e9}, {{{{0, 1}, {1, 1}}, 1e12}, {{{0, 1}}, 1e12}, {{{0, 1}}, 1e12}, {{{1, 1}}, 1e12}});
    CHECK(rates == std::vector<double>{1e9, 1e9, 1e9, 9e9});
  }

  TEST_CASE("a flow whose cap is the whole link has exactly its cap where it is alone") {
    const double capacity = 50e9 * 0.9 / 3;
    CHECK(rates_of({capacity}, {{{{0, 1}}, capacity}}) == std::vector<double>{capacity});
  }

  TEST_CASE("random problems have the rates of textbook progressive filling, and no link carries too much") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Scenario scenario = random_scenario(seed, 10 + static_cast<int>(seed) * 5, 5 + static_cast<int>(seed));
      const std::vector<double> rates = rates_of(scenario.capacities, scenario.flows);
      const std::vector<double> reference = reference_rates(scenario.capacities, scenario.flows);
      std::vector<double> carried(scenario.capacities.size(), 0.0);
      for (std::size_t f = 0; f < rates.size(); ++f) {
        // The reference stops a flow within 1e-9 of its limit, ours at it.
        REQUIRE(rates[f] == doctest::Approx(reference[f]).epsilon(1e-7));
        for (const LinkUse& use : scenario.flows[f].uses) carried[use.link] += use.share * rates[f];
      }
      for (std::size_t l = 0; l < carried.size(); ++l) CHECK(carried[l] <= scenario.capacities[l] * (1 + 1e-9));
    }
  }

  TEST_CASE("one solver gives the same answers in any order of questions") {
    MaxMinSolver solver;
    const auto solve = [&](std::uint64_t seed) {
      const Scenario scenario = random_scenario(seed, 60, 12);
      MaxMinProblem problem{.capacities = scenario.capacities};
      for (const ReferenceFlow& flow : scenario.flows) add_flow(problem, flow.cap, flow.weight, flow.uses);
      return solver.solve(problem);
    };
    const std::vector<double> first = solve(1);
    solve(2);
    CHECK(solve(1) == first);
  }
}

}  // namespace plumb::test
