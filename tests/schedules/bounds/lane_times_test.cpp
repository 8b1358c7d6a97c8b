#include "schedules/bounds/lane_times.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/schedules/order_questions.h"

namespace plumb::test {

TEST_CASE("a V's earliest starts follow the first micro-batch there and back, with hops between ranks alone") {
  OrderQuestion question{.frame = {.microbatches = 3, .stages = snake_placement(2, 4)},
                         .ranks = 2,
                         .costs = equal_costs({.forward = 2, .input_grad = 3, .weight_grad = 5, .hop = 1}, 4)};
  const std::vector<LaneTimes> lanes = lanes_of(question);
  REQUIRE(lanes.size() == 1);
  const LaneTimes& lane = lanes[0];
  CHECK(lane.microbatches == 3);
  CHECK(lane.ranks == std::vector<int>{0, 1, 1, 0});
  CHECK(lane.hop == both_ways({1, 0, 1, 0}));
  CHECK(lane.first_forward == std::vector<std::int64_t>{0, 3, 5, 8});
  CHECK(lane.first_input_grad == std::vector<std::int64_t>{21, 17, 14, 10});
  CHECK(lane.uncounted == std::vector<std::int64_t>{0, 3, 3, 0});  // rank 1 starts at 3
  // Behind the last I of stage 1: I of stage 0 a hop later, and its W.
  CHECK(lane.tails[1] == BoundTail{.way = 1 + 3 + 5, .to = 0});
}

TEST_CASE("the way forth has the activations' hops, and the way back the gradients'") {
  OrderQuestion question = chain_question(3, 2, {.forward = 1, .input_grad = 2});
  question.costs.hop = {.activation = {3, 4, 0}, .gradient = {5, 6, 0}};
  const LaneTimes lane = lanes_of(question).front();
  CHECK(lane.first_forward == std::vector<std::int64_t>{0, 1 + 3, 1 + 3 + 1 + 4});
  CHECK(lane.first_input_grad == std::vector<std::int64_t>{10 + 2 + 6 + 2 + 5, 10 + 2 + 6, 10});
  CHECK(lane.tails[2] == BoundTail{.way = 6 + 2 + 5 + 2, .to = 0});
}

TEST_CASE("slices count as micro-batches, and the last one of a sequence goes back first") {
  OrderQuestion question = chain_question(2, 4, {.forward = 3, .input_grad = 2});
  question.slices = 5;
  const LaneTimes lane = lanes_of(question).front();
  CHECK(lane.microbatches == 20);
  CHECK(lane.slice_wait == 4 * 3);
}

TEST_CASE("a whole backward is an input gradient that takes all of its time") {
  OrderQuestion question = chain_question(2, 4, {.forward = 1, .input_grad = 2, .weight_grad = 3});
  question.whole_backwards = true;
  const LaneTimes lane = lanes_of(question).front();
  CHECK(lane.input_grad == std::vector<std::int64_t>{5, 5});
  CHECK(lane.weight_grad == std::vector<std::int64_t>{0, 0});
}

TEST_CASE("a makespan counts from its start, and micro-batches fall evenly into two lanes") {
  const OrderQuestion question{.frame = {.microbatches = 5, .stages = bidirectional_placement(2)},
                               .ranks = 2,
                               .costs = equal_costs({}, 4),
                               .objective = Objective::kMakespan};
  const std::vector<LaneTimes> lanes = lanes_of(question);
  REQUIRE(lanes.size() == 2);
  CHECK(lanes[0].microbatches == 2);
  CHECK(lanes[1].microbatches == 3);
  CHECK(lanes[1].ranks == std::vector<int>{1, 0});
  CHECK(lanes[1].uncounted == std::vector<std::int64_t>{0, 0});
}

TEST_CASE("a question that no order finishes in time is refused") {
  const std::int64_t long_time = kLongestCost.count();
  CHECK_THROWS_AS(lanes_of(chain_question(2, 64, {.forward = long_time, .input_grad = long_time})), SpecError);
}

}  // namespace plumb::test
