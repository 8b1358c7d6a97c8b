#include "schedules/synthesis/local_search.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "tests/schedules/order_questions.h"

namespace plumb::test {

TEST_CASE("the span of 1F1B runs from a rank's first forward to its last backward") {
  const Schedule schedule = make_schedule("1f1b", {.ranks = 3, .microbatches = 4});
  // Rank 0: (m + p - 1)(F + B), as the makespan; the others start later and end earlier.
  const OrderCosts costs = equal_costs({.forward = 1, .input_grad = 2}, 3);
  CHECK(order_time(schedule, question_of(schedule, costs)) == 18);
  CHECK(order_time(schedule, question_of(schedule, costs, 0, Objective::kMakespan)) == 18);
}

TEST_CASE("an order that waits for no reason is put right") {
  // Rank 0 runs its forwards one by one, as late as it may; 1F1B takes 9 of F = 1, B = 2.
  const Schedule lazy = parse_schedule("0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1");
  const OrderQuestion question = question_of(lazy, equal_costs({.forward = 1, .input_grad = 2}, 2));
  CHECK(order_time(lazy, question) == 12);
  const Schedule better = shorten_order(lazy, question, {.steps = 100});
  CHECK(order_time(better, question) == 9);
  CHECK(validate(better).empty());
}

TEST_CASE("a search finds the same among hours as among units") {
  const Schedule start = make_schedule("zb-v", {.ranks = 4, .microbatches = 8});
  const LocalSearch search{.steps = 2000, .seed = 7};
  // Sixths of F + I + W, and their thresholds at every step, are whole numbers of both.
  const auto found = [&](std::int64_t unit) {
    const OrderCosts costs =
        equal_costs({.forward = 10 * unit, .input_grad = 15 * unit, .weight_grad = 5 * unit, .hop = unit}, 8);
    return shorten_order(start, question_of(start, costs), search);
  };
  CHECK(found(2000) == found(2'000'000'000'000'000));  // F lasts 20,000 s: threshold times steps leaves 64 bits
  CHECK(found(2000) != start);
}

TEST_CASE("a search keeps to its limit of activations, to its seed and to what it started from") {
  const Schedule start = make_schedule("zb-v", {.ranks = 4, .microbatches = 8});
  const OrderQuestion question =
      question_of(start, equal_costs({.forward = 10, .input_grad = 15, .weight_grad = 8, .hop = 1}, 8), 8);
  const LocalSearch search{.steps = 3000, .seed = 7};
  const Schedule found = shorten_order(start, question, search);
  CHECK(validate(found).empty());
  CHECK(order_time(found, question) < order_time(start, question));
  CHECK(shorten_order(start, question, search) == found);
  CHECK(shorten_order(start, question, {.steps = 0}) == start);
  CHECK(shorten_order(start, question, {.is_stopped = [] { return true; }}) == start);
  for (const std::vector<Action>& actions : found.ranks) {
    int held = 0;
    for (const Action& action : actions) {
      if (action.op == Op::kForward) ++held;
      if (gives_weight_gradient(action.op)) --held;
      CHECK(held <= 8);
    }
  }
}

TEST_CASE("what cannot be searched is refused") {
  const Schedule zb_v = make_schedule("zb-v", {.ranks = 2, .microbatches = 4});
  CHECK_THROWS_WITH_AS(shorten_order(zb_v, question_of(zb_v, equal_costs({}, 4), 3), {}),
                       "rank 0 of zb-v holds more than its memory to begin with: give it more", ScheduleError);
  const Schedule turned = parse_schedule("0F0 0B0&0F1 0B1");
  CHECK_THROWS_AS(order_time(turned, question_of(turned, equal_costs({}, 1))), ScheduleError);
  const Schedule stuck = parse_schedule("0F0 0B1 0F1 0B0\n1F1 1F0 1B0 1B1");
  CHECK_THROWS_AS(order_time(stuck, question_of(stuck, equal_costs({}, 2))), ScheduleError);
}

TEST_CASE("a pair starts with the later of its inputs, and both end at its end") {
  const Schedule schedule = parse_schedule("0F0 1F0 0F1&1B0 1F1 0B0 1B1 0B1");
  OrderQuestion question = question_of(schedule, equal_costs({.forward = 10, .input_grad = 20}, 2));
  CHECK(order_time(schedule, question) == 2 * 2 * 30);
  question.costs.pairs = {.backward = {30, 22, 21, 30}};
  CHECK(order_time(schedule, question) == 2 * 2 * 30 - 8);
  CHECK(order_time(parse_schedule("0F0 1F0 0F1 1B0 1F1 0B0 1B1 0B1"), question) == 2 * 2 * 30);
}

TEST_CASE("pairs are made where they make an order shorter, and taken apart where not") {
  const Schedule apart = parse_schedule("0F0 1F0 0F1 1B0 0B0 1F1 1B1 0B1");
  OrderQuestion question = question_of(apart, equal_costs({.forward = 10, .input_grad = 20}, 2));
  question.whole_backwards = true;
  question.costs.pairs = {.backward = {30, 22, 21, 30}};
  const Schedule paired = shorten_order(apart, question, {.steps = 500});
  CHECK(validate(paired).empty());
  CHECK(order_time(paired, question) == 2 * 2 * 30 - 8 - 9);  // 0F1 with 1B0, and 1F1 with 0B0
  CHECK(std::ranges::count_if(paired.ranks[0], &Action::overlaps_next) == 2);
  // On two ranks a pair that waits for a gradient keeps the other rank's forward waiting.
  const Schedule waiting = parse_schedule("0F0 2F0 0F1&2B0 2F1 2B1 0B0 0B1\n1F0 1F1 1B0 1B1");
  OrderQuestion two = question_of(waiting, equal_costs({.forward = 10, .input_grad = 20}, 3));
  two.whole_backwards = true;
  two.costs.pairs = {.backward = {30, 30, 29, 30, 30, 30, 30, 30, 30}};
  CHECK(order_time(shorten_order(waiting, two, {.steps = 500}), two) <= order_time(waiting, two));
}

}  // namespace plumb::test
