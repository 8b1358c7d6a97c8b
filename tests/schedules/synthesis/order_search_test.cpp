#include "schedules/synthesis/order_search.h"

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"

namespace plumb::test {

TEST_CASE("a search is valid, within its limit, no longer than it began, and the same for the same seed") {
  const Schedule start = make_schedule("zb-v", {.ranks = 4, .microbatches = 8});
  const OrderQuestion question =
      question_of(start, equal_costs({.forward = 10, .input_grad = 15, .weight_grad = 8, .hop = 1}, 8), 8);
  const OrderSearch search{.steps = 2000, .seed = 3, .least_gap_ratio = 0.5};
  const FoundOrder found = search_order(start, question, search);
  CHECK(validate(found.schedule, {.max_activations = {8}}).empty());
  CHECK(order_time(found.schedule, question) == found.time);
  CHECK(found.time < order_time(start, question));
  CHECK(search_order(start, question, search).schedule == found.schedule);
  CHECK(search_order(start, question, {.is_stopped = [] { return true; }}).schedule ==
        search_order(start, question, {.steps = 0}).schedule);
}

TEST_CASE("a limit that the first order breaks is told, and a goal ends the search") {
  const Schedule gpipe = make_schedule("gpipe", {.ranks = 2, .microbatches = 4});
  const OrderCosts costs = equal_costs({}, 2);
  CHECK(search_order(gpipe, question_of(gpipe, costs, 2), {}).time == -1);
  // GPipe takes (m + p - 1)(F + B) = 10 with F = B = 1, which is good enough here.
  CHECK(search_order(gpipe, question_of(gpipe, costs), {.goal = 10}).schedule == gpipe);
}

}  // namespace plumb::test
