#include "schedules/search/search_schedule.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/search/certificate.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"

namespace plumb::test {

TEST_CASE("long weight gradients: ZB-H1's order is found, and proved the shortest") {
  // List scheduling alone finds 4422.
  const OrderQuestion question =
      chain_question(8, 13, {.forward = 67, .input_grad = 81, .weight_grad = 125, .hop = 20}, 8);
  const std::optional<FoundSchedule> found = search_schedule(question);
  REQUIRE(found);
  CHECK(found->time == 4396);
  CHECK(found->bound.time == 4396);
  CHECK(validate(found->schedule).empty());
}

TEST_CASE("with twice the memory the makespan is no longer than ZB-H2's") {
  OrderQuestion question = chain_question(6, 10, {.forward = 65, .input_grad = 106, .weight_grad = 74}, 12);
  question.objective = Objective::kMakespan;
  const Schedule h2 = make_schedule("zb-h2", {.ranks = 6, .microbatches = 10});
  CHECK(order_time(h2, question) == 2816);
  const std::optional<FoundSchedule> found = search_schedule(question, {.timed_actions = 1e6});
  REQUIRE(found);
  CHECK(found->time <= 2816);
  CHECK(found->time >= found->bound.time);
}

TEST_CASE("an order of the user's is a start, and the result is the same each time") {
  const Schedule zb_v = make_schedule("zb-v", {.ranks = 3, .microbatches = 6});
  const OrderQuestion question =
      question_of(zb_v, equal_costs({.forward = 10, .input_grad = 14, .weight_grad = 9, .hop = 1}, 6), 6);
  const SearchEffort effort{.timed_actions = 1e6};
  const std::optional<FoundSchedule> found = search_schedule(question, effort, {zb_v});
  REQUIRE(found);
  CHECK(found->time <= order_time(zb_v, question));
  CHECK(search_schedule(question, effort, {zb_v})->schedule == found->schedule);
}

TEST_CASE("orders of slices are searched within the rules of slices") {
  for (const char* name : {"seq1f1b", "terapipe", "svpp", "slimpipe"}) {
    CAPTURE(name);
    const Schedule sliced = make_schedule(name, {.ranks = 3, .microbatches = 4, .slices = 3});
    OrderQuestion question = placed_question(sliced, Objective::kMakespan);
    CHECK(question.slices == 3);
    question.costs = equal_costs({.forward = 10, .input_grad = 14, .weight_grad = 9, .hop = 1}, 3);
    for (const bool whole : {true, false}) {
      question.whole_backwards = whole;
      const Schedule start = searchable_order(sliced, question);
      const FoundSchedule found = search_schedule(question, {.timed_actions = 1e6}, {start}).value();
      CHECK(found.time <= order_time(start, question));
      CHECK(found.time >= found.bound.time);
      CHECK(validate(found.schedule).empty());
      CHECK(slices_of(found.schedule) == 3);
      CHECK(certificate_faults(certificate_of(question, found), found.schedule).empty());
    }
  }
}

TEST_CASE("a search that is stopped at once gives the best order that it knows, and tells each one that is better") {
  std::vector<std::int64_t> told;
  const OrderQuestion question = chain_question(4, 8, {.forward = 10, .input_grad = 14, .weight_grad = 9, .hop = 1}, 4);
  const std::optional<FoundSchedule> found = search_schedule(
      question,
      {.is_stopped = [] { return true; }, .progress = [&](std::int64_t time, std::int64_t) { told.push_back(time); }});
  REQUIRE(found);
  CHECK(validate(found->schedule).empty());
  CHECK(std::ranges::is_sorted(told, std::greater<>()));
  CHECK(told.back() == found->time);
}

TEST_CASE("no order is found where a rank cannot hold a micro-batch on its way") {
  OrderQuestion question{
      .frame = {.microbatches = 2, .stages = snake_placement(2, 4)}, .ranks = 2, .costs = equal_costs({}, 4)};
  question.memory = counted_activations(question, 1);
  CHECK_FALSE(search_schedule(question).has_value());
}

TEST_CASE("a small question is settled by exhaustive search where no other bound is tight") {
  OrderQuestion question = chain_question(3, 4, {});
  question.costs = {
      .forward = {3, 9, 4}, .input_grad = {7, 2, 8}, .weight_grad = {5, 6, 1}, .hop = both_ways({2, 1, 0})};
  question.memory = counted_activations(question, 2);
  const std::optional<FoundSchedule> found = search_schedule(question);
  REQUIRE(found);
  CHECK(found->time == found->bound.time);
}

}  // namespace plumb::test
