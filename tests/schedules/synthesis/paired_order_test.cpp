#include "schedules/synthesis/paired_order.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/forms/text_form.h"
#include "schedules/rules/validate.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {
namespace {

OrderQuestion question_with_pairs(const Schedule& schedule, int most = 0) {
  OrderQuestion question = question_of(schedule, equal_costs({.forward = 10, .input_grad = 20}, 2), most);
  question.whole_backwards = true;
  question.costs.pairs = {.backward = {30, 22, 21, 30}};
  return question;
}

}  // namespace

TEST_CASE("neighbours that take less time together become pairs, with the forward first") {
  const Schedule apart = parse_schedule("0F0 1F0 1B0 0F1 0B0 1F1 1B1 0B1");
  const OrderQuestion question = question_with_pairs(apart);
  const Schedule paired = paired_order(apart, question);
  CHECK(row_text(paired.ranks[0]) == "0F0 1F0 0F1&1B0 1F1&0B0 1B1 0B1");
  CHECK(order_time(paired, question) == order_time(apart, question) - 8 - 9);
  CHECK(validate(paired).empty());
}

TEST_CASE("a forward that would come ahead of a backward needs its memory") {
  const Schedule apart = parse_schedule("0F0 1F0 1B0 0F1 0B0 1F1 1B1 0B1");
  const Schedule paired = paired_order(apart, question_with_pairs(apart, 2));
  CHECK(row_text(paired.ranks[0]) == "0F0 1F0 1B0 0F1 0B0 1F1 1B1 0B1");
}

TEST_CASE("an order without such costs, and one whose pairs would wait for each other, stays as it is") {
  const Schedule apart = parse_schedule("0F0 1F0 1B0 0F1 0B0 1F1 1B1 0B1");
  const OrderQuestion question = question_of(apart, equal_costs({.forward = 10, .input_grad = 20}, 2));
  CHECK(paired_order(apart, question).ranks == apart.ranks);
}

}  // namespace plumb::test
