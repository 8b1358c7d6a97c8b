#include "schedules/synthesis/list_scheduler.h"

#include <limits>
#include <utility>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
namespace {

/// Returns rules with backwards first, then the later stage, and so many forwards ahead of backwards on each stage.
ListRules backwards_first(const std::vector<int>& max_in_flight) {
  const std::size_t stages = max_in_flight.size();
  return {.forward_urgency = std::vector<int>(stages, 1),
          .backward_urgency = std::vector<int>(stages, 0),
          .max_in_flight = max_in_flight};
}

/// Returns such rules with I and W, on two ranks.
ListRules split_backwards_first(const std::vector<int>& max_in_flight) {
  ListRules rules = backwards_first(max_in_flight);
  rules.patience = {1, 1};
  return rules;
}

OrderQuestion whole(OrderQuestion question) {
  question.whole_backwards = true;
  return question;
}

}  // namespace

TEST_CASE("backwards first, with p-r activations on rank r, is 1F1B") {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 2 * p; ++m) {
      std::vector<int> limits;
      for (int r = 0; r < p; ++r) limits.push_back(p - r);
      CHECK(
          list_schedule(whole(chain_question(p, m, {.forward = 1, .input_grad = 2})), backwards_first(limits)).ranks ==
          make_schedule("1f1b", {.ranks = p, .microbatches = m}).ranks);
    }
  }
}

TEST_CASE("slices ascend forth and descend back, and go back once all of their sequence have run forward") {
  OrderQuestion question = whole(chain_question(2, 2, {.forward = 1, .input_grad = 2}));
  question.slices = 2;
  // Rank 1 runs B of both slices of micro-batch 0 until 7, and rank 0, with three under way, until 9.
  CHECK(list_schedule(question, backwards_first({3, 2})).ranks ==
        rows("0F0 0F0/1 0F1 0B0/1 0B0 0F1/1 0B1/1 0B1\n1F0 1F0/1 1B0/1 1B0 1F1 1F1/1 1B1/1 1B1"));
  CHECK_THROWS_AS(list_schedule(question, backwards_first({2, 1})), ScheduleError);  // a sequence has two
}

TEST_CASE("weight gradients fill the gaps, and run before a forward that waits for their memory") {
  OrderQuestion question = chain_question(2, 2, {.weight_grad = 1});
  const ListRules rules = split_backwards_first({2, 2});
  question.memory.max_bytes = {2, 1};
  // Rank 0 has a gap from 2 on, waits for 1I0, and has no W yet; rank 1 holds one activation at a time.
  CHECK(list_schedule(question, rules).ranks == rows("0F0 0F1 0I0 0W0 0I1 0W1\n1F0 1I0 1W0 1F1 1I1 1W1"));
  // Half of an activation goes with I: 1F1 still has to wait for the other half, unless there is room for both.
  question.memory.activation_bytes = {2, 2};
  question.memory.released_at_input_grad_bytes = {1, 1};
  question.memory.max_bytes = {4, 2};
  CHECK(list_schedule(question, rules).ranks[1] == rows("0F0\n1F0 1I0 1W0 1F1 1I1 1W1")[1]);
  question.memory.max_bytes = {4, 3};
  CHECK(list_schedule(question, rules).ranks[1] == rows("0F0\n1F0 1I0 1F1 1I1 1W0 1W1")[1]);
}

TEST_CASE("whole backwards keep to the memory as well") {
  OrderQuestion question = whole(chain_question(2, 2, {}, 1));
  CHECK(list_schedule(question, backwards_first({2, 2})).ranks == rows("0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1"));
}

TEST_CASE("a weight gradient that a gap is too short for waits, unless the rank has patience") {
  const OrderQuestion question = chain_question(2, 2, {.forward = 2, .input_grad = 3, .weight_grad = 3});
  ListRules rules = split_backwards_first({2, 2});
  // Rank 0 ends 0I0 at 10; 1I1 runs from 9 to 12 and leaves a gap of 2, shorter than W.
  CHECK(list_schedule(question, rules).ranks[0] == rows("0F0 0F1 0I0 0W0 0I1 0W1")[0]);
  rules.patience = {0, 0};
  CHECK(list_schedule(question, rules).ranks[0] == rows("0F0 0F1 0I0 0I1 0W0 0W1")[0]);
}

TEST_CASE("the micro-batches fall into the lanes in order, and each lane starts at its own first stage") {
  const Schedule frame{.microbatches = 3, .stages = bidirectional_placement(2)};
  const OrderQuestion question{
      .frame = frame, .ranks = 2, .costs = equal_costs({.forward = 1, .input_grad = 2}, 4), .whole_backwards = true};
  const Schedule schedule = list_schedule(question, backwards_first({1, 1, 1, 1}));
  CHECK(validate(schedule).empty());
  CHECK(schedule.ranks[0].front() == parse_action("0F0"));
  CHECK(schedule.ranks[1].front() == parse_action("2F1"));  // one micro-batch of three goes down, two come up
}

TEST_CASE("an order is given up once it cannot be shorter, and its time is that of its timed actions") {
  OrderQuestion question = chain_question(3, 5, {.forward = 2, .input_grad = 3, .weight_grad = 1, .hop = 1}, 3);
  ListRules rules = split_backwards_first({3, 3, 2});
  rules.patience = {0.5, 0, 1};
  for (const Objective objective : {Objective::kSpan, Objective::kMakespan}) {
    question.objective = objective;
    const Schedule whole_order = list_schedule(question, rules);
    const std::int64_t time = order_time(whole_order, question);
    const ListedOrder listed = list_schedule_below(time + 1, question, rules);
    CHECK(listed.is_below);
    CHECK(listed.schedule == whole_order);
    CHECK(listed.time == time);
    CHECK_FALSE(list_schedule_below(time, question, rules).is_below);
  }
}

TEST_CASE("rules that an order calls alike list the same, and there are others that do not") {
  const int p = 4;
  const OrderQuestion question =
      chain_question(p, 9, {.forward = 20, .input_grad = 23, .weight_grad = 11, .hop = 2}, 7);
  const std::int64_t any_time = std::numeric_limits<std::int64_t>::max();
  const auto within = [](double value, double least, double most) { return value >= least && value <= most; };
  int same = 0, others = 0;
  for (const double patience : {0.0, 0.5, 0.9}) {
    for (const int more : {0, 2, 4}) {
      ListRules rules = split_backwards_first({1 + 3 + more, 1 + 2 + more, 1 + 1 + more, 1});
      rules.patience.assign(p, patience);
      const ListedOrder listed = list_schedule_below(any_time, question, rules);
      for (int r = 0; r < p; ++r) {
        const LikeRules& alike = listed.alike[r];
        const auto check = [&](const ListRules& varied, bool is_alike) {
          const bool equal = list_schedule(question, varied).ranks == listed.schedule.ranks;
          if (is_alike) CHECK(equal);
          ++(equal ? same : others);
        };
        for (const double other : {0.0, 0.25, 0.5, 0.75, 0.9, 1.0}) {
          ListRules varied = rules;
          varied.patience[r] = other;
          check(varied, other == patience || within(other, alike.least_patience, alike.most_patience));
        }
        for (int other = 1; other < 10; ++other) {
          ListRules varied = rules;
          varied.max_in_flight[r] = other;
          check(varied, within(other, alike.least_in_flight, alike.most_in_flight));
        }
        ListRules varied = rules;
        std::swap(varied.forward_urgency[r], varied.backward_urgency[r]);
        check(varied, alike.any_urgency);
      }
    }
  }
  CHECK(same > 0);
  CHECK(others > 0);
}

TEST_CASE("limits that cannot work are refused") {
  const Schedule frame{.name = "stuck", .microbatches = 4, .stages = snake_placement(2, 4)};
  OrderQuestion question{.frame = frame, .ranks = 2, .costs = equal_costs({.weight_grad = 1}, 4)};
  question.memory = counted_activations(question, 2);
  ListRules rules = split_backwards_first({4, 4, 4, 4});
  rules.forward_urgency = {0, 0, 1, 1};  // the first chunk first, until nothing is left for the second
  CHECK_THROWS_WITH_AS(list_schedule(question, rules), "the rules of stuck deadlock: raise its limits", ScheduleError);
}

}  // namespace plumb::test
