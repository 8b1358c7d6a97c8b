#include "planner/search/searched_order.h"

#include <doctest/doctest.h>

#include "planner/search/evaluate_plan.h"
#include "schedules/error.h"
#include "schedules/rules/validate.h"
#include "schedules/search/catalogue_orders.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {
namespace {

Plan plan_with(const std::string& schedule, int pipeline = 4) {
  return {.model = small_gpt(),
          .cluster = preset_cluster("h100:4"),
          .training = {.global_batch = 8, .sequence = 512},
          .layout = {.pipeline = pipeline, .schedule = schedule}};
}

}  // namespace

TEST_CASE("a plan asks for its placement, its costs and the memory of its order's activations") {
  const PlanQuestion asked = question_of_plan(plan_with("1f1b"), Objective::kMakespan);
  const OrderQuestion& question = asked.question;
  CHECK(question.ranks == 4);
  CHECK(question.whole_backwards);
  CHECK(question.costs.forward[0] == duration_of(asked.table, {.op = Op::kForward, .stage = 0}).count());
  for (int r = 0; r < 4; ++r) CHECK(question.memory.max_bytes[r] == (4 - r) * question.memory.activation_bytes[r]);
  CHECK(fits_memory(question, asked.start));
  const PlanQuestion split = question_of_plan(plan_with("1f1b"), Objective::kMakespan, Backwards::kSplit);
  CHECK_FALSE(split.question.whole_backwards);
  for (int r = 0; r < 4; ++r)  // as many activations, whose bytes depend on what a split backward keeps
    CHECK(split.question.memory.max_bytes[r] >= (4 - r) * split.question.memory.activation_bytes[r]);
  CHECK(fits_memory(split.question, split.start));
  CHECK_THROWS_AS(question_of_plan(plan_with("bpipe"), Objective::kMakespan), ScheduleError);
}

TEST_CASE("the order that is found is valid, quicker as simulated, and within the memory of the plan's own") {
  const Plan plan = plan_with("1f1b");
  const SearchedOrder searched = search_order_of(plan, {.timed_actions = 1e5});
  CHECK(searched.is_quicker);  // split backwards leave a smaller bubble
  REQUIRE(searched.plan.order);
  CHECK(searched.plan.order->name == "1f1b-searched");
  CHECK(searched.plan.layout.schedule == "1f1b-searched");
  CHECK(validate(*searched.plan.order).empty());
  CHECK(searched.time >= searched.bound.time);
  const PlanQuestion split = question_of_plan(plan, Objective::kMakespan, Backwards::kSplit);
  CHECK(fits_memory(split.question, *searched.plan.order));
  const Evaluation before = evaluate(plan), after = evaluate(searched.plan);
  CHECK(searched.step_before == to_seconds(before.simulation.makespan));
  CHECK(searched.step == to_seconds(after.simulation.makespan));
  CHECK(searched.step < searched.step_before);
  CHECK(after.infeasible.empty());
}

TEST_CASE("a plan whose order cannot be beaten stays as it is") {
  const Plan plan = plan_with("1f1b", 1);
  const SearchedOrder searched = search_order_of(plan, {.timed_actions = 1e5});
  CHECK_FALSE(searched.is_quicker);
  CHECK_FALSE(searched.plan.order);
  CHECK(searched.step == searched.step_before);
  CHECK(searched.plan.layout.schedule == "1f1b");
}

}  // namespace plumb::test
