#include "schedules/synthesis/list_scheduler.h"

#include <limits>
#include <utility>

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "schedules/forms/text_form.h"
#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "schedules/synthesis/local_search.h"
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

/// Returns such rules with I and W, on two ranks that may hold as much as they like.
ListRules split_backwards_first(const std::vector<int>& max_in_flight) {
  ListRules rules = backwards_first(max_in_flight);
  rules.whole_backwards = false;
  rules.patience = {1, 1};
  rules.max_bytes = {100, 100};
  return rules;
}

}  // namespace

TEST_CASE("backwards first, with p-r activations on rank r, is 1F1B") {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 2 * p; ++m) {
      std::vector<int> limits;
      for (int r = 0; r < p; ++r) limits.push_back(p - r);
      const Schedule frame{.name = "1f1b", .microbatches = m, .stages = loop_placement(p, p)};
      CHECK(list_schedule(frame, p, equal_costs({.forward = 1, .input_grad = 2}, p), backwards_first(limits)) ==
            make_schedule("1f1b", {.ranks = p, .microbatches = m}));
    }
  }
}

TEST_CASE("weight gradients fill the gaps, and run before a forward that waits for their memory") {
  const Schedule frame{.microbatches = 2, .stages = loop_placement(2, 2)};
  ListRules rules = split_backwards_first({2, 2});
  rules.max_bytes = {2, 1};
  // Rank 0 has a gap from 2 on, waits for 1I0, and has no W yet; rank 1 holds one activation at a time.
  CHECK(list_schedule(frame, 2, equal_costs({.weight_grad = 1}, 2), rules).ranks ==
        rows("0F0 0F1 0I0 0W0 0I1 0W1\n1F0 1I0 1W0 1F1 1I1 1W1"));
  // Half of an activation goes with I: 1F1 still has to wait for the other half, unless there is room for both.
  rules.activation_bytes = 2;
  rules.released_at_input_grad_bytes = 1;
  rules.max_bytes = {4, 2};
  CHECK(list_schedule(frame, 2, equal_costs({.weight_grad = 1}, 2), rules).ranks[1] ==
        rows("0F0\n1F0 1I0 1W0 1F1 1I1 1W1")[1]);
  rules.max_bytes = {4, 3};
  CHECK(list_schedule(frame, 2, equal_costs({.weight_grad = 1}, 2), rules).ranks[1] ==
        rows("0F0\n1F0 1I0 1F1 1I1 1W0 1W1")[1]);
}

TEST_CASE("a weight gradient that a gap is too short for waits, unless the rank has patience") {
  const Schedule frame{.microbatches = 2, .stages = loop_placement(2, 2)};
  ListRules rules = split_backwards_first({2, 2});
  const OrderCosts costs = equal_costs({.forward = 2, .input_grad = 3, .weight_grad = 3}, 2);
  // Rank 0 ends 0I0 at 10; 1I1 runs from 9 to 12 and leaves a gap of 2, shorter than W.
  CHECK(list_schedule(frame, 2, costs, rules).ranks[0] == rows("0F0 0F1 0I0 0W0 0I1 0W1")[0]);
  rules.patience = {0, 0};
  CHECK(list_schedule(frame, 2, costs, rules).ranks[0] == rows("0F0 0F1 0I0 0I1 0W0 0W1")[0]);
}

TEST_CASE("the micro-batches fall into the lanes in order, and each lane starts at its own first stage") {
  const Schedule frame{.microbatches = 3, .stages = bidirectional_placement(2)};
  const Schedule schedule =
      list_schedule(frame, 2, equal_costs({.forward = 1, .input_grad = 2}, 4), backwards_first({1, 1, 1, 1}));
  CHECK(validate(schedule).empty());
  CHECK(schedule.ranks[0].front() == parse_action("0F0"));
  CHECK(schedule.ranks[1].front() == parse_action("2F1"));  // one micro-batch of three goes down, two come up
}

TEST_CASE("an order is given up once it cannot be shorter, and its span is that of its timed actions") {
  const Schedule frame{.microbatches = 5, .stages = loop_placement(3, 3)};
  ListRules rules = split_backwards_first({3, 3, 2});
  rules.max_bytes = {3, 3, 3};
  rules.patience = {0.5, 0, 1};
  const OrderCosts costs = equal_costs({.forward = 2, .input_grad = 3, .weight_grad = 1, .hop = 1}, 3);
  const Schedule whole = list_schedule(frame, 3, costs, rules);
  const std::int64_t span = longest_span(whole, costs);
  const ListedOrder listed = list_schedule_below(span + 1, frame, 3, costs, rules);
  CHECK(listed.is_below);
  CHECK(listed.schedule == whole);
  CHECK(listed.span == span);
  CHECK_FALSE(list_schedule_below(span, frame, 3, costs, rules).is_below);
}

TEST_CASE("rules that an order calls alike list the same, and there are others that do not") {
  const int p = 4;
  const Schedule frame{.microbatches = 9, .stages = loop_placement(p, p)};
  const OrderCosts costs = equal_costs({.forward = 20, .input_grad = 23, .weight_grad = 11, .hop = 2}, p);
  const std::int64_t any_span = std::numeric_limits<std::int64_t>::max();
  const auto within = [](double value, double least, double most) { return value >= least && value <= most; };
  int same = 0, others = 0;
  for (const double patience : {0.0, 0.5, 0.9}) {
    for (const int more : {0, 2, 4}) {
      ListRules rules = split_backwards_first({1 + 3 + more, 1 + 2 + more, 1 + 1 + more, 1});
      rules.max_bytes = {7, 7, 7, 7};
      rules.patience.assign(p, patience);
      const ListedOrder listed = list_schedule_below(any_span, frame, p, costs, rules);
      for (int r = 0; r < p; ++r) {
        const LikeRules& alike = listed.alike[r];
        const auto check = [&](const ListRules& varied, bool is_alike) {
          const bool equal = list_schedule(frame, p, costs, varied).ranks == listed.schedule.ranks;
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
  ListRules rules = split_backwards_first({4, 4, 4, 4});
  rules.forward_urgency = {0, 0, 1, 1};  // the first chunk first, until nothing is left for the second
  rules.max_bytes = {2, 2};
  CHECK_THROWS_WITH_AS(list_schedule(frame, 2, equal_costs({.weight_grad = 1}, 4), rules),
                       "the rules of stuck deadlock at stage 0: raise its limits", ScheduleError);
}

}  // namespace plumb::test
