#include "schedules/synthesis/floating_order.h"

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/liveness.h"
#include "schedules/rules/validate.h"
#include "schedules/synthesis/timed_order.h"
#include "tests/schedules/order_questions.h"

namespace plumb::test {

TEST_CASE("a weight gradient runs in a gap that is long enough, and otherwise at the end") {
  const Schedule schedule = parse_schedule("0F0 0F1 0I0 0I1 0W0 0W1\n1F0 1I0 1F1 1I1 1W0 1W1");
  const OrderCosts costs = equal_costs({.forward = 1, .input_grad = 1, .weight_grad = 2, .hop = 1}, 2);
  const OrderGraph graph(schedule, question_of(schedule, costs));
  FloatingOrder timed(graph);
  const RankOrders kept = timed.without_weight_grads();
  const auto row_of_rank_0 = [&](double ratio) {
    return row_text(in_order(schedule, graph, timed.complete(kept, {2, GapRule{ratio}})).ranks[0]);
  };
  // Rank 1 runs F0 2-3, I0 3-4, F1 4-5, I1 5-6. Rank 0 runs I0 5-6 and waits to 7 for I1: a W takes twice that.
  CHECK(timed.time(kept, {2, GapRule{1}}) == 12);  // I1 7-8, W 8-10, W 10-12
  CHECK(row_of_rank_0(1) == "0F0 0F1 0I0 0I1 0W0 0W1");
  CHECK(timed.time(kept, {2, GapRule{0.5}}) == 11);  // W 6-8, I1 8-9, W 9-11
  CHECK(row_of_rank_0(0.5) == "0F0 0F1 0I0 0W0 0I1 0W1");
}

TEST_CASE("a forward without memory makes the oldest weight gradient run first") {
  const Schedule schedule = parse_schedule("0F0 0I0 0F1 0I1 0W0 0W1");
  const OrderGraph graph(schedule, question_of(schedule, equal_costs({.weight_grad = 1}, 1), 1));
  FloatingOrder timed(graph);
  const RankOrders whole = timed.complete(timed.without_weight_grads(), {GapRule{}});
  CHECK(row_text(in_order(schedule, graph, whole).ranks[0]) == "0F0 0I0 0W0 0F1 0I1 0W1");

  const Schedule two_ahead = parse_schedule("0F0 0F1 0I0 0I1 0W0 0W1");
  const OrderGraph ahead(two_ahead, question_of(two_ahead, equal_costs({.weight_grad = 1}, 1), 1));
  FloatingOrder impossible(ahead);
  CHECK(impossible.time(impossible.without_weight_grads(), {GapRule{}}) == FloatingOrder::kImpossible);
}

TEST_CASE("the completed order is valid, keeps to the limit and takes the time that was told") {
  const OrderCosts costs = equal_costs({.forward = 10, .input_grad = 13, .weight_grad = 7, .hop = 2}, 8);
  const Schedule schedule = make_schedule("zb-v", {.ranks = 4, .microbatches = 9});
  for (const double ratio : {0.0, 0.5, 1.0}) {
    const Objective objective = ratio == 0.5 ? Objective::kMakespan : Objective::kSpan;
    const OrderGraph graph(schedule, question_of(schedule, costs, 8, objective));
    FloatingOrder timed(graph);
    const std::vector<GapRule> gaps(4, {ratio});
    const std::int64_t time = timed.time(timed.without_weight_grads(), gaps);
    const RankOrders whole = timed.complete(timed.without_weight_grads(), gaps);
    CHECK(TimedOrder(graph).time(whole, graph.joined) == time);
    const Schedule completed = in_order(schedule, graph, whole);
    CHECK(validate(completed, {.max_activations = {8}}).empty());
  }
}

}  // namespace plumb::test
