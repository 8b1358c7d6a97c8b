#include "schedules/synthesis/fit_to_costs.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/bounds/lower_bound.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"

namespace plumb::test {

TEST_CASE("the best candidate is made no longer, and no shorter than the bound") {
  const Schedule zb_v = make_schedule("zb-v", {.ranks = 3, .microbatches = 4});
  const Schedule v_half = make_schedule("v-half", {.ranks = 3, .microbatches = 4});
  OrderCosts costs = equal_costs({.forward = 10, .input_grad = 14, .weight_grad = 9, .hop = 1}, 6);
  costs.forward[2] = 17;
  const OrderQuestion question = question_of(zb_v, costs, 6);
  const FittedOrder best = fit_to_costs({v_half, zb_v}, question);
  CHECK(validate(best.schedule, {.max_activations = {6}}).empty());
  CHECK(order_time(best.schedule, question) == best.time);
  CHECK(best.time <= std::min(order_time(zb_v, question), order_time(v_half, question)));
  CHECK(best.time >= best_bound(question).time);
}

TEST_CASE("candidates over the memory are left out, and at least one must be within it") {
  const Schedule gpipe = make_schedule("gpipe", {.ranks = 2, .microbatches = 6});
  const Schedule one_f_one_b = make_schedule("1f1b", {.ranks = 2, .microbatches = 6});
  const OrderQuestion question = question_of(gpipe, equal_costs({}, 2), 2);
  CHECK(validate(fit_to_costs({gpipe, one_f_one_b}, question).schedule, {.max_activations = {2}}).empty());
  CHECK_THROWS_AS(fit_to_costs({gpipe}, question), ScheduleError);
}

TEST_CASE("a search that is stopped gives its best candidate") {
  const Schedule zb_v = make_schedule("zb-v", {.ranks = 3, .microbatches = 4});
  const OrderQuestion question = question_of(zb_v, equal_costs({.forward = 10, .input_grad = 14}, 6), 6);
  CHECK(fit_to_costs({zb_v}, question, {.is_stopped = [] { return true; }}).schedule == zb_v);
}

}  // namespace plumb::test
