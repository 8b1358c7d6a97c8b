#include "schedules/synthesis/local_search.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"

namespace plumb::test {

TEST_CASE("the span of 1F1B runs from a rank's first forward to its last backward") {
  const Schedule schedule = make_schedule("1f1b", {.ranks = 3, .microbatches = 4});
  // Rank 0: (m + p - 1)(F + B), as the makespan; the others start later and end earlier.
  CHECK(longest_span(schedule, equal_costs({.forward = 1, .input_grad = 2}, 3)) == 18);
}

TEST_CASE("an order that waits for no reason is put right") {
  // Rank 0 runs its forwards one by one, as late as it may; 1F1B takes 9 of F = 1, B = 2.
  const Schedule lazy = parse_schedule("0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1");
  const OrderCosts costs = equal_costs({.forward = 1, .input_grad = 2}, 2);
  CHECK(longest_span(lazy, costs) == 12);
  const Schedule better = shorten_span(lazy, costs, {.steps = 100});
  CHECK(longest_span(better, costs) == 9);
  CHECK(validate(better).empty());
}

TEST_CASE("a search finds the same among hours as among units") {
  const Schedule start = make_schedule("zb-v", {.ranks = 4, .microbatches = 8});
  const LocalSearch search{.steps = 2000, .seed = 7};
  // Sixths of F + I + W, and their thresholds at every step, are whole numbers of both.
  const auto found = [&](std::int64_t unit) {
    return shorten_span(
        start, equal_costs({.forward = 10 * unit, .input_grad = 15 * unit, .weight_grad = 5 * unit, .hop = unit}, 8),
        search);
  };
  CHECK(found(2000) == found(2'000'000'000'000'000));  // F lasts 20,000 s: threshold times steps leaves 64 bits
  CHECK(found(2000) != start);
}

TEST_CASE("a search keeps to its limit of activations, to its seed and to what it started from") {
  const Schedule start = make_schedule("zb-v", {.ranks = 4, .microbatches = 8});
  const OrderCosts costs = equal_costs({.forward = 10, .input_grad = 15, .weight_grad = 8, .hop = 1}, 8);
  const LocalSearch search{.steps = 3000, .seed = 7, .rank_limit = 8};
  const Schedule found = shorten_span(start, costs, search);
  CHECK(validate(found).empty());
  CHECK(longest_span(found, costs) < longest_span(start, costs));
  CHECK(shorten_span(start, costs, search) == found);
  CHECK(shorten_span(start, costs, {.steps = 0}) == start);
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
  CHECK_THROWS_WITH_AS(
      shorten_span(make_schedule("zb-v", {.ranks = 2, .microbatches = 4}), equal_costs({}, 4), {.rank_limit = 3}),
      "rank 0 of zb-v holds more than 3 activations to begin with: raise the limit", ScheduleError);
  CHECK_THROWS_AS(longest_span(make_schedule("dualpipev", {.ranks = 2, .microbatches = 4}), equal_costs({}, 4)),
                  ScheduleError);
  CHECK_THROWS_AS(longest_span(parse_schedule("0F0 0B1 0F1 0B0\n1F1 1F0 1B0 1B1"), equal_costs({}, 2)), ScheduleError);
}

}  // namespace plumb::test
