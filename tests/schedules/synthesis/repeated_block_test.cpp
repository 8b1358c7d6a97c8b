#include "schedules/synthesis/repeated_block.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"

namespace plumb::test {
namespace {

/// Returns F, I and W on a chain, a stage a rank: two slots a hop forth, where one would do, and one back. The two
/// actions of a rank stand 1 behind a multiple of the period apart, so that they never meet.
BuildingBlock split_block(int p, int idle_slots, int rank_limit) {
  BuildingBlock block{.period = 3, .rank_limit = rank_limit};
  for (int s = 0; s < p; ++s) {
    block.forward_slot.push_back(2 * s);
    block.backward_slot.push_back(2 * (p - 1) + 1 + idle_slots + (p - 1 - s));
  }
  return block;
}

/// Returns F and B on a chain, each as soon as it can be: 1F1B's block.
BuildingBlock whole_block(int p, int rank_limit) {
  BuildingBlock block{.period = 3, .whole_backwards = true, .rank_limit = rank_limit};
  for (int s = 0; s < p; ++s) {
    block.forward_slot.push_back(s);
    block.backward_slot.push_back(p + 2 * (p - 1 - s));
  }
  return block;
}

Schedule chain_schedule(int p, int m) {
  return {.name = "chain", .microbatches = m, .stages = loop_placement(p, p)};
}

}  // namespace

TEST_CASE("actions move forward into the holes at both ends, and weight gradients take the slots left free") {
  // Rank 0 has F in 0, 3, 6 and I in 4, 7, 10; rank 1 F in 2, 5, 8 and I in 3, 6, 9. The moves, in order of time:
  // 1F0 to 1, 0F1 to 1, 1I0 to 2; nothing from 4 (0I0) to 6 (0F2); then 1F2 to 7, in front of 1W1, 1I2 to 8, 0I2 to 9.
  const Schedule schedule = repeat_block(chain_schedule(2, 3), 2, split_block(2, 0, 2));
  CHECK(to_text(schedule) == to_text(parse_schedule("name: chain\n"
                                                    "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2\n"
                                                    "1F0 1I0 1W0 1F1 1I1 1F2 1I2 1W1 1W2\n")));
}

TEST_CASE("a steady state that keeps its slots hides hops in the slack between them") {
  const int p = 6;
  const int m = 24;
  BuildingBlock block = split_block(p, 0, p);
  const Schedule steady = repeat_block(chain_schedule(p, m), p, block);
  block.moves_steady_state = true;
  const Schedule moved = repeat_block(chain_schedule(p, m), p, block);
  const auto growth = [](const Schedule& schedule) {
    OrderCosts costs = equal_costs({.forward = 10, .input_grad = 10, .weight_grad = 10}, p);
    const std::int64_t free_links = order_time(schedule, question_of(schedule, costs));
    costs.hop = both_ways(std::vector<std::int64_t>(p, 1));
    return order_time(schedule, question_of(schedule, costs)) - free_links;
  };
  CHECK(growth(steady) < growth(moved));
}

TEST_CASE("1F1B's block repeats to 1F1B on its first rank, and to 1F1B's time") {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 3 * p; ++m) {
      INFO("p=", p, " m=", m);
      const Schedule repeated = repeat_block(chain_schedule(p, m), p, whole_block(p, p));
      CHECK(repeated.ranks[0] == make_schedule("1f1b", {.ranks = p, .microbatches = m}).ranks[0]);
      const OrderCosts costs = equal_costs({.forward = 1, .input_grad = 2}, p);
      CHECK(order_time(repeated, question_of(repeated, costs)) == 3 * (m + p - 1));
    }
  }
}

TEST_CASE("forwards that may move throughout run ahead as far as memory goes") {
  BuildingBlock block = whole_block(2, 3);
  block.moves_steady_state = true;
  // 0F2 goes to slot 2; 0F3 to slot 6, behind the end of 0B0, which makes room for it.
  CHECK(repeat_block(chain_schedule(2, 4), 2, block).ranks[0] ==
        parse_schedule("0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3").ranks[0]);
}

TEST_CASE("every order is valid, has each action once and keeps to the limit") {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 3 * p; ++m) {
      for (const int idle_slots : {0, 3, 6}) {
        for (const bool moves : {false, true}) {
          BuildingBlock block = split_block(p, idle_slots, p + 2);
          block.moves_steady_state = moves;
          INFO("p=", p, " m=", m, " idle slots=", idle_slots);
          const Schedule schedule = repeat_block(chain_schedule(p, m), p, block);
          CHECK(action_count(schedule) == 3 * p * m);
          CHECK(validate(schedule, {.max_activations = {p + 2}}).empty());
        }
      }
    }
  }
}

}  // namespace plumb::test
