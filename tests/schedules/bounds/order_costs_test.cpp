#include "schedules/bounds/order_costs.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("equal costs are those of every stage") {
  const OrderCosts costs = equal_costs({.forward = 2, .input_grad = 3, .weight_grad = 5, .hop = 7}, 2);
  CHECK(costs.forward == std::vector<std::int64_t>{2, 2});
  CHECK(costs.input_grad == std::vector<std::int64_t>{3, 3});
  CHECK(costs.weight_grad == std::vector<std::int64_t>{5, 5});
  CHECK(costs.hop == both_ways({7, 7}));
}

TEST_CASE("a cost table's whole backwards count as input gradients alone") {
  const CostTable table = chunk_cost_table(2, {.forward = {Seconds{1}, Seconds{2}}, .backward = {Seconds{3}}});
  const OrderCosts whole = order_costs(table, loop_placement(2, 2), true);
  constexpr std::int64_t kSecond = 1'000'000'000'000;
  CHECK(whole.forward == std::vector<std::int64_t>{kSecond, 2 * kSecond});
  CHECK(whole.input_grad == std::vector<std::int64_t>{3 * kSecond, 3 * kSecond});
  CHECK(whole.weight_grad == std::vector<std::int64_t>{0, 0});
  CHECK(order_costs(table, loop_placement(2, 2)).weight_grad == std::vector<std::int64_t>{kSecond, kSecond});
}

TEST_CASE("a hop is that of its direction's link between two ranks, its message's time included") {
  CostTable table = chunk_cost_table(4, {.hop_latency = Seconds{1}});
  table.links[{0, 1}] = {.latency = Seconds{2}, .bytes_per_second = 10};
  table.links[{1, 0}] = {.latency = Seconds{2}, .bytes_per_second = 5};
  table.stages[0].activation_message_bytes = table.stages[1].gradient_message_bytes = 20;
  const OrderCosts costs = order_costs(table, snake_placement(2, 4));
  constexpr std::int64_t kSecond = 1'000'000'000'000;
  // Stages 1 and 2 lie on rank 1, stage 2 sends no bytes, and the last stage has no successor.
  CHECK(costs.hop.activation == std::vector<std::int64_t>{4 * kSecond, 0, 2 * kSecond, 0});  // 20 bytes at 10 a second
  CHECK(costs.hop.gradient == std::vector<std::int64_t>{6 * kSecond, 0, 2 * kSecond, 0});    // and back at 5
  CHECK(costs.hop_busy.activation == std::vector<std::int64_t>{2 * kSecond, 0, 0, 0});
  CHECK(costs.hop_busy.gradient == std::vector<std::int64_t>{4 * kSecond, 0, 0, 0});
  table.links.clear();  // no bandwidth is given: any number of messages at once
  CHECK_FALSE(order_costs(table, snake_placement(2, 4)).has_busy_links());
}

TEST_CASE("pairs are priced where exchanges hide, and a backward never takes less than beyond a forward") {
  CostTable table =
      chunk_cost_table(4, {.forward = {Seconds{4}}, .input_grad = {Seconds{8}}, .weight_grad = {Seconds{5}}});
  const std::vector<StagePlace> places = snake_placement(2, 4);
  CHECK_FALSE(order_costs(table, places).has_pairs());
  for (StageCosts& stage : table.stages) {  // an exchange of 2 s in F, and of 3 s in I and B
    const auto add = [&stage](Op op, double seconds) {
      stage.segments[static_cast<std::size_t>(op)].front().push_back(
          {.kind = Segment::Kind::kCollective, .seconds = Seconds{seconds}, .group = Group::kExpert});
    };
    add(Op::kForward, 2);
    add(Op::kInputGrad, 3);
    add(Op::kBackward, 3);
  }
  constexpr std::int64_t kSecond = 1'000'000'000'000;
  const OrderCosts costs = order_costs(table, places);
  REQUIRE(costs.has_pairs());
  const Action forward{.op = Op::kForward, .stage = 1};
  CHECK(pair_duration(costs, forward, {.op = Op::kInputGrad, .stage = 2}) == 12 * kSecond);  // all is hidden
  CHECK(pair_duration(costs, forward, {.op = Op::kBackward, .stage = 2}) == 17 * kSecond);
  CHECK(pair_duration(costs, forward, {.op = Op::kInputGrad, .stage = 1}) == 12 * kSecond);  // also of one stage
  CHECK(order_costs(table, places, true).pairs.input_grad.empty());
  const OrderCosts least = costs_below_pairs(costs, places);
  CHECK_FALSE(least.has_pairs());
  CHECK(least.forward == costs.forward);
  CHECK(least.input_grad == std::vector<std::int64_t>(4, 6 * kSecond));   // 12 - 6, of 11
  CHECK(least.weight_grad == std::vector<std::int64_t>(4, 5 * kSecond));  // 17 - 6 - 6
  CHECK(order_costs(table, loop_placement(4, 4)).has_pairs());            // of one stage a rank
  CHECK_FALSE(order_costs(chunk_cost_table(4, {}), loop_placement(4, 4)).has_pairs());
}

}  // namespace plumb::test
