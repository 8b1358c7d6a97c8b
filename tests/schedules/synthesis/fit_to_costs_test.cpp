#include "schedules/synthesis/fit_to_costs.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "schedules/synthesis/local_search.h"

namespace plumb::test {

TEST_CASE("the best candidate is made no longer, and no order is shorter than the busiest rank's work") {
  const Schedule zb_v = make_schedule("zb-v", {.ranks = 3, .microbatches = 4});
  const Schedule v_half = make_schedule("v-half", {.ranks = 3, .microbatches = 4});
  OrderCosts costs = equal_costs({.forward = 10, .input_grad = 14, .weight_grad = 9, .hop = 1}, 6);
  costs.forward[2] = 17;
  const Schedule best = fit_to_costs({v_half, zb_v}, costs, 6);
  CHECK(validate(best, {.max_activations = {6}}).empty());
  const std::int64_t span = longest_span(best, costs);
  CHECK(span <= std::min(longest_span(zb_v, costs), longest_span(v_half, costs)));
  CHECK(most_work(best, costs) == 4 * (10 + 17 + 2 * (14 + 9)));  // rank 2 has stages 2 and 3
  CHECK(span >= most_work(best, costs));
}

TEST_CASE("candidates over the limit are left out, and at least one must be within it") {
  const Schedule gpipe = make_schedule("gpipe", {.ranks = 2, .microbatches = 6});
  const Schedule one_f_one_b = make_schedule("1f1b", {.ranks = 2, .microbatches = 6});
  const OrderCosts costs = equal_costs({}, 2);
  CHECK(validate(fit_to_costs({gpipe, one_f_one_b}, costs, 2), {.max_activations = {2}}).empty());
  CHECK_THROWS_AS(fit_to_costs({gpipe}, costs, 2), ScheduleError);
}

}  // namespace plumb::test
