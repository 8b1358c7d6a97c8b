#include "schedules/cost_table.h"

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {
namespace {
Action action(Op op, int stage, int part = 0) {
  return {.op = op, .part = static_cast<std::int16_t>(part), .stage = stage, .microbatch = 0};
}
}  // namespace

TEST_CASE("chunk costs: a whole backward is the sum of its halves unless it is given, recompute is a forward") {
  const CostTable costs = chunk_cost_table(2, {.forward = {Seconds{1}, Seconds{3}}, .weight_grad = {Seconds{2}}});
  CHECK(duration_of(costs, action(Op::kForward, 1)) == to_sim_time(Seconds{3}));
  CHECK(duration_of(costs, action(Op::kBackward, 0)) == to_sim_time(Seconds{3}));
  CHECK(duration_of(costs, action(Op::kRecompute, 1)) == to_sim_time(Seconds{3}));
  CHECK(duration_of(costs, action(Op::kOptimizerStep, 0)) == SimTime{0});

  const CostTable whole = chunk_cost_table(2, {.backward = {Seconds{5}}});
  CHECK(duration_of(whole, action(Op::kBackward, 1)) == to_sim_time(Seconds{5}));
}

TEST_CASE("a list of costs has one entry, or one for each stage") {
  CHECK_THROWS_AS(chunk_cost_table(3, {.forward = {Seconds{1}, Seconds{1}}}), SpecError);
}

TEST_CASE("blocking segments add up; what runs beside them only counts where it lasts longer") {
  CostTable costs{.stages = {StageCosts{}}};
  auto& forward = costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)];
  forward = {{Segment{.seconds = Seconds{2}}, Segment{.kind = Segment::Kind::kCollective, .seconds = Seconds{1}},
              Segment{.kind = Segment::Kind::kCollective, .seconds = Seconds{2.5}, .beside = true}}};
  CHECK(duration_of(costs, action(Op::kForward, 0)) == to_sim_time(Seconds{3}));
  forward[0][2].seconds = Seconds{4};
  CHECK(duration_of(costs, action(Op::kForward, 0)) == to_sim_time(Seconds{4}));
}

TEST_CASE("one entry serves every part, several serve one each") {
  CostTable costs{.stages = {StageCosts{}}};
  auto& forward = costs.stages[0].segments[static_cast<std::size_t>(Op::kForward)];
  forward = {{Segment{.seconds = Seconds{1}}}};
  CHECK(duration_of(costs, action(Op::kForward, 0, 7)) == to_sim_time(Seconds{1}));
  forward.push_back({Segment{.seconds = Seconds{2}}});
  CHECK(duration_of(costs, action(Op::kForward, 0, 1)) == to_sim_time(Seconds{2}));
}

TEST_CASE("a link that is not named is the default one") {
  CostTable costs{.default_link = {.latency = Seconds{3}}, .links = {{{0, 1}, {.latency = Seconds{1}}}}};
  CHECK(link_between(costs, 0, 1).latency == Seconds{1});
  CHECK(link_between(costs, 1, 0).latency == Seconds{3});
}

}  // namespace plumb::test
