#include "schedules/bounds/rank_bounds.h"

#include <doctest/doctest.h>

#include "tests/schedules/order_questions.h"

namespace plumb::test {
namespace {

std::vector<std::int64_t> times_of(const LowerBound& bound) {
  std::vector<std::int64_t> times;
  for (const BoundTerm& term : bound.terms) times.push_back(term.time);
  return times;
}

}  // namespace

TEST_CASE("a rank idles where it has run the forwards that its memory holds before its first gradient is there") {
  // ZB-H1's memory with costs for which the weight gradients are long: p=8, m=13, F=67, I=81, W=125, hop 20.
  const OrderQuestion question =
      chain_question(8, 13, {.forward = 67, .input_grad = 81, .weight_grad = 125, .hop = 20}, 8);
  const LowerBound bound = rank_work_bound(question, lanes_of(question).front(), {.first = 0, .last = 0});
  // The first gradient is there after 67 + 7 (67 + 81 + 2 * 20) = 1383, and 8 forwards take 536.
  CHECK(times_of(bound) == std::vector<std::int64_t>{13 * 67, 1383 - 536, 13 * 81, 13 * 125});
  CHECK(bound.time == 4396);
  CHECK(bound.reason == "the work of rank 0");
}

TEST_CASE("the way back from the last rank binds where its weight gradients may wait") {
  // Span of rank 0: the way to rank 1, its forwards and input gradients, the way back and a weight gradient.
  const OrderQuestion question = chain_question(2, 4, {.forward = 1, .input_grad = 2, .weight_grad = 1, .hop = 3});
  const LowerBound bound = drain_bound(question, lanes_of(question).front(), {.first = 1, .last = 1});
  CHECK(times_of(bound) == std::vector<std::int64_t>{1 + 3, 4 * 1, 4 * 2, 3 + 2, 1});
}

TEST_CASE("weight gradients that make room for the last forward come before the drain") {
  // One activation on rank 1: three of its four weight gradients run before its last forward.
  OrderQuestion question = chain_question(2, 4, {.forward = 1, .input_grad = 2, .weight_grad = 5}, 4);
  question.memory.max_bytes[1] = 1;
  const LowerBound bound = drain_bound(question, lanes_of(question).front(), {.first = 1, .last = 1});
  CHECK(times_of(bound) == std::vector<std::int64_t>{1, 4 * 1, 4 * 2, 3 * 5, 2, 5});
  // Half of an activation goes with I: at the last forward all I but one may have run, two halves of four
  // must be gone.
  question.memory = {.activation_bytes = {2, 2}, .released_at_input_grad_bytes = {1, 1}, .max_bytes = {8, 3}};
  CHECK(times_of(drain_bound(question, lanes_of(question).front(), {.first = 1, .last = 1})) ==
        std::vector<std::int64_t>{1, 4 * 1, 4 * 2, 2 * 5, 2, 5});
}

TEST_CASE("with whole backwards a rank's work has the drain behind it: 1F1B's makespan is the best") {
  OrderQuestion question = chain_question(4, 8, {.forward = 1, .input_grad = 1, .weight_grad = 1});
  question.whole_backwards = true;
  question.objective = Objective::kMakespan;
  const LowerBound bound = rank_work_bound(question, lanes_of(question).front(), {.first = 3, .last = 3});
  CHECK(times_of(bound) == std::vector<std::int64_t>{3, 8, 16, 6});
  CHECK(bound.time == (8 + 3) * 3);  // (m + p - 1)(F + B)
}

TEST_CASE("a stretch of a rank's stages has the work of those alone, and starts with the first of them") {
  const OrderQuestion question{.frame = {.microbatches = 3, .stages = snake_placement(2, 4)},
                               .ranks = 2,
                               .costs = equal_costs({.forward = 2, .input_grad = 3, .weight_grad = 5, .hop = 1}, 4),
                               .objective = Objective::kMakespan};
  const LaneTimes lane = lanes_of(question).front();
  // Stage 3 starts at 8, has its gradient as soon as its first forward has run, and is one of rank 0's two.
  CHECK(times_of(rank_work_bound(question, lane, {.first = 3, .last = 3})) == std::vector<std::int64_t>{8, 6, 9, 15});
  CHECK(times_of(rank_work_bound(question, lane, {.first = 0, .last = 3})) == std::vector<std::int64_t>{12, 18, 30});
}

}  // namespace plumb::test
