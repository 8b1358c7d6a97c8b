#include "schedules/phases.h"

#include <doctest/doctest.h>

#include <array>
#include <limits>

#include "schedules/error.h"

namespace plumb::test {
namespace {

constexpr Action kForwardOf0{.op = Op::kForward, .stage = 0, .microbatch = 3};
constexpr Action kBackwardOf1{.op = Op::kBackward, .stage = 1, .microbatch = 1};

Segment exchange(double seconds) {
  return {.kind = Segment::Kind::kCollective, .seconds = Seconds{seconds}, .group = Group::kExpert};
}

/// F of stage 0 and B of stage 1, each with compute and one exchange.
CostTable pair_costs(double forward, double exchange_of_forward, double backward, double exchange_of_backward) {
  CostTable costs{.stages = std::vector<StageCosts>(2)};
  costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)] = {
      {Segment{.seconds = Seconds{forward}}, exchange(exchange_of_forward)}};
  costs.stages[1].segments[static_cast<std::size_t>(Op::kBackward)] = {
      {Segment{.seconds = Seconds{backward}}, exchange(exchange_of_backward)}};
  return costs;
}

double lasting(const CostTable& costs) {
  return to_seconds(pair_duration(costs, kForwardOf0, kBackwardOf1)).count();
}

}  // namespace

TEST_CASE("a pair hides each action's exchanges behind the other's compute") {
  CHECK(lasting(pair_costs(4, 2, 8, 6)) == 14);  // max(4, 6) + max(8, 2)
  CHECK(lasting(pair_costs(4, 2, 8, 3)) == 12);  // all is hidden: the compute of both
  CHECK(lasting(pair_costs(4, 9, 8, 6)) == 15);  // nothing but exchanges is left: 6 + 9
  CHECK(lasting(pair_costs(4, 0, 8, 0)) == 12);  // without exchanges it is the sum
  CHECK(lasting(pair_costs(0, 5, 8, 0)) == 8);
}

TEST_CASE("two passes of one stage take turns if one is a forward, and two backwards follow each other") {
  const auto of_stage_0 = [](Op op, int microbatch) { return Action{.op = op, .microbatch = microbatch}; };
  CostTable costs{.stages = std::vector<StageCosts>(1)};
  for (const Op op : {Op::kForward, Op::kBackward, Op::kInputGrad})
    costs.stages[0].segments[static_cast<std::size_t>(op)] = {{Segment{.seconds = Seconds{4}}, exchange(1)}};
  const auto together = [&](Op first, Op second) {
    return to_seconds(pair_duration(costs, of_stage_0(first, 1), of_stage_0(second, 0))).count();
  };
  CHECK(together(Op::kForward, Op::kForward) == 8);
  CHECK(together(Op::kForward, Op::kInputGrad) == 8);
  CHECK(together(Op::kBackward, Op::kForward) == 8);
  CHECK(together(Op::kBackward, Op::kInputGrad) == 10);
  CHECK_FALSE(take_turns(of_stage_0(Op::kForward, 1), of_stage_0(Op::kOptimizerStep, -1)));
}

TEST_CASE("a pair lasts the sum where an action already has something beside its compute") {
  CostTable costs = pair_costs(4, 2, 8, 6);
  std::vector<Segment>& forward = costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)].front();
  Segment ring = exchange(7);
  ring.beside = true;
  forward.push_back(ring);
  CHECK(lasting(costs) == 7 + 14);  // max(4 + 2, 7) and 8 + 6
}

TEST_CASE("phases name the action of each segment") {
  const CostTable costs = pair_costs(4, 2, 8, 6);
  const std::array<Action, 2> both = {kForwardOf0, kBackwardOf1};
  const std::vector<CostPhase> phases = phases_of(costs, both);
  REQUIRE(phases.size() == 2);
  CHECK(phases[0].blocking.front().action == 0);
  CHECK(phases[0].beside.front().action == 1);
  CHECK(phases[0].beside.front().segment->seconds == Seconds{6});
  CHECK(phases[1].blocking.front().action == 1);
  CHECK(phases[1].beside.front().action == 0);
  CHECK(phases_of(costs, {both.data(), 1}).front().blocking.size() == 2);
}

TEST_CASE("a pair with an exchange that is not finite is refused as the action is") {
  CHECK_THROWS_AS(lasting(pair_costs(4, std::numeric_limits<double>::infinity(), 8, 6)), SpecError);
}

}  // namespace plumb::test
