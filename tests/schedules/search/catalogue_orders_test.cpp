#include "schedules/search/catalogue_orders.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/generators/catalogue.h"
#include "schedules/rules/validate.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
namespace {

std::vector<std::string> names_of(const std::vector<Schedule>& orders) {
  std::vector<std::string> names;
  for (const Schedule& order : orders) names.push_back(order.name);
  return names;
}

}  // namespace

TEST_CASE("the orders of a chain are those that its memory holds, all valid, with backwards as the question has them") {
  OrderQuestion question = chain_question(4, 8, {.weight_grad = 1}, 4);
  CHECK(names_of(catalogue_orders(question)) ==
        std::vector<std::string>{"naive", "1f1b", "zb-h1", "izb", "seq1f1b", "svpp", "hanayo"});
  for (const Schedule& order : catalogue_orders(question)) {
    CHECK(validate(order, {.max_activations = {4}}).empty());
    CHECK(std::ranges::count(order.ranks[0], Op::kInputGrad, &Action::op) == 8);
  }
  question.whole_backwards = true;
  CHECK(names_of(catalogue_orders(question)) == std::vector<std::string>{"naive", "1f1b", "seq1f1b", "svpp", "hanayo"});
}

TEST_CASE("a V, a loop and two directions have their own orders") {
  const auto orders_on = [](const std::vector<StagePlace>& stages) {
    const OrderQuestion question{.frame = {.microbatches = 8, .stages = stages},
                                 .ranks = 4,
                                 .costs = equal_costs({}, static_cast<int>(stages.size()))};
    return names_of(catalogue_orders(question));
  };
  CHECK(orders_on(snake_placement(4, 8)) ==
        std::vector<std::string>{"zb-v", "v-half", "v-min", "v-1f1b", "dualpipev", "stp", "hanayo"});
  CHECK(orders_on(loop_placement(4, 8)) == std::vector<std::string>{"interleaved", "bfs", "izb", "svpp", "slimpipe"});
  CHECK(orders_on(bidirectional_placement(4)) == std::vector<std::string>{"dualpipe", "chimera", "gems"});
}

TEST_CASE("sequences in slices have the orders of the catalogue that cut them alike, and a serial one") {
  OrderQuestion question = chain_question(4, 8, {.weight_grad = 1});
  question.slices = 2;
  CHECK(names_of(catalogue_orders(question)) == std::vector<std::string>{"seq1f1b", "terapipe", "svpp", "slimpipe"});
  for (const Schedule& order : catalogue_orders(question)) CHECK(validate(order).empty());
  question = chain_question(2, 1, {.weight_grad = 1});
  question.slices = 2;
  CHECK(serial_order(question).ranks == rows("0F0 0F0/1 0I0/1 0W0/1 0I0 0W0\n1F0 1F0/1 1I0/1 1W0/1 1I0 1W0"));
  question.slices = 1;
  CHECK(as_searched(make_schedule("seq1f1b", {.ranks = 2, .microbatches = 1, .slices = 2}), question).ranks.empty());
}

TEST_CASE("a whole backward is split and a pair comes apart, and neither takes longer by it") {
  const Schedule schedule = make_schedule("dualpipev", {.ranks = 4, .microbatches = 8});
  const OrderQuestion question = question_of(schedule, equal_costs({.weight_grad = 1}, 8));
  const Schedule order = as_searched(schedule, question);
  CHECK(validate(order).empty());
  CHECK(order_time(order, question) <= 3 * 2 * 8 + (4 - 1) * 2);  // its formula: (p-1)F of a rank's two chunks
  CHECK(as_searched(make_schedule("bpipe", {.ranks = 4, .microbatches = 8}), question).ranks.empty());  // moves
}

TEST_CASE("the serial order runs one micro-batch at a time, with the least memory") {
  OrderQuestion question = chain_question(2, 2, {});
  CHECK(serial_order(question).ranks == rows("0F0 0I0 0W0 0F1 0I1 0W1\n1F0 1I0 1W0 1F1 1I1 1W1"));
  question.frame.stages = snake_placement(2, 4);
  CHECK(validate(serial_order(question), {.max_activations = {2}}).empty());
  question.frame.stages = bidirectional_placement(2);
  CHECK(validate(serial_order(question), {.max_activations = {1}}).empty());
}

TEST_CASE("pairs of a schedule stay where they take less time, and B in them whole") {
  const Schedule dual = make_schedule("dualpipev", {.ranks = 2, .microbatches = 6});
  OrderQuestion question = placed_question(dual, Objective::kMakespan);
  CHECK(validate(searchable_order(dual, question)).empty());  // before its costs are known
  question.costs = equal_costs({.forward = 10, .input_grad = 10, .weight_grad = 10}, 4);
  const auto pairs = [](const Schedule& order) {
    std::ptrdiff_t count = 0;
    for (const std::vector<Action>& list : order.ranks) count += std::ranges::count_if(list, &Action::overlaps_next);
    return count;
  };
  CHECK(pairs(searchable_order(dual, question)) == 0);
  question.costs.pairs = {.input_grad = std::vector<std::int64_t>(16, 15),
                          .backward = std::vector<std::int64_t>(16, 25)};
  const Schedule order = searchable_order(dual, question);
  CHECK(pairs(order) == pairs(dual));
  CHECK(pairs(dual) > 0);
  CHECK(validate(order).empty());
  int with = 0, without = 0;
  for (const Schedule& known : catalogue_orders(question)) {
    if (known.name != "dualpipev") continue;
    (pairs(known) > 0 ? with : without) += 1;
  }
  CHECK(with == 1);
  CHECK(without == 1);
}

}  // namespace plumb::test
