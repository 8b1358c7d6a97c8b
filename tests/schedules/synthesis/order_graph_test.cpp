#include "schedules/synthesis/order_graph.h"

#include <array>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "tests/schedules/order_questions.h"

namespace plumb::test {

TEST_CASE("each action knows what it needs, how long it takes and who waits for it") {
  const Schedule schedule = parse_schedule("0F0 0I0 0W0\n1F0 1B0");
  const OrderCosts costs{.forward = {1, 2},
                         .input_grad = {3, 4},
                         .weight_grad = {5, 6},
                         .hop = {.activation = {8, 0}, .gradient = {7, 0}}};
  const OrderGraph graph(schedule, question_of(schedule, costs, 2));
  CHECK(graph.listed == RankOrders{{0, 1, 2}, {3, 4}});
  CHECK(graph.durations == std::vector<std::int64_t>{1, 3, 5, 2, 10});
  CHECK(graph.bytes_added == std::vector<std::int64_t>{1, 0, -1, 1, -1});
  CHECK(graph.max_bytes == std::vector<std::int64_t>{2, 2});
  CHECK(graph.readers == std::vector<int>{1, -1, -1, -1, 0});
  CHECK(graph.inputs[1][0].id == 0);  // 0I0: its forward, and 1B0 a hop away
  CHECK(graph.inputs[1][1].id == 4);
  CHECK(graph.inputs[1][1].delay == 7);
  CHECK(graph.inputs[3][1].delay == 8);  // 1F0: the activation's hop
  CHECK(graph.inputs[2][0].id == 1);     // 0W0: its I
  CHECK(row_text(in_order(schedule, graph, {{0, 1, 2}, {4, 3}}).ranks[1]) == "1B0 1F0");
}

TEST_CASE("slices ascend in forwards and descend in backwards, each behind its neighbour's of the same slice") {
  const Schedule schedule = parse_schedule("0F0 0F0/1 0I0/1 0W0/1 0I0 0W0\n1F0 1F0/1 1B0/1 1B0");
  const OrderGraph graph(schedule, question_of(schedule, equal_costs({}, 2)));
  const auto inputs = [&graph](std::size_t id) {
    return std::array{graph.inputs[id][0].id, graph.inputs[id][1].id, graph.inputs[id][2].id};
  };
  CHECK(inputs(1) == std::array{-1, -1, 0});  // 0F0/1 behind 0F0
  CHECK(inputs(7) == std::array{-1, 1, 6});   // 1F0/1 needs 0F0/1, and 1F0 before it
  CHECK(inputs(4) == std::array{0, 9, 2});    // 0I0 needs 0F0, 1B0, and 0I0/1 before it
  CHECK(inputs(5) == std::array{4, -1, -1});  // 0W0 needs 0I0
}

TEST_CASE("other operations, and other pairs than a forward with a backward behind it, cannot be searched") {
  for (const char* text : {"0F0 0R0 0B0", "0F0 0B0&0F1 0B1", "0F0 0I0 0F1&0W0 0B1"}) {
    const Schedule schedule = parse_schedule(text);
    CHECK_THROWS_AS(OrderGraph(schedule, question_of(schedule, equal_costs({}, 1))), ScheduleError);
  }
}

TEST_CASE("pairs are those of the schedule, and gain what their costs say") {
  const Schedule paired = parse_schedule("0F0 1F0 0F1&1B0 1F1 1B1 0I0 0W0 0B1");
  OrderCosts costs{.forward = {1, 2}, .input_grad = {3, 4}, .weight_grad = {5, 6}, .hop = both_ways({0, 0})};
  costs.pairs = {.input_grad = {4, 4, 5, 6}, .backward = {9, 9, 10, 12}};
  const OrderGraph graph(paired, question_of(paired, costs));
  CHECK(graph.joined == Joined{0, 0, 1, 0, 0, 0, 0, 0, 0});
  CHECK(graph.pair_gain(2, 3) == 1 + 4 + 6 - 9);  // 0F1 and 1B0
  CHECK(graph.pair_gain(4, 6) == 2 + 3 - 5);      // 1F1 and 0I0 gain nothing
  CHECK(graph.pair_gain(3, 2) == 0);              // the backward stands first
  CHECK(graph.pair_gain(2, 4) == 0);              // two forwards
  CHECK(in_order(paired, graph, graph.listed, graph.joined).ranks == paired.ranks);
  CHECK_FALSE(in_order(paired, graph, graph.listed).ranks[0][2].overlaps_next);
}

}  // namespace plumb::test
