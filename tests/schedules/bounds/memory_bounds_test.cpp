#include "schedules/bounds/memory_bounds.h"

#include <doctest/doctest.h>

#include "tests/schedules/order_questions.h"

namespace plumb::test {

TEST_CASE("with one activation a rank, micro-batches pass one by one: naive model parallelism is the best") {
  // F = 1, B = 2 on three ranks: a cycle of rank 0 is 3 * 3.
  OrderQuestion question = chain_question(3, 4, {.forward = 1, .input_grad = 1, .weight_grad = 1}, 1);
  question.whole_backwards = true;
  const LowerBound bound = memory_cycle_bound(question, lanes_of(question).front(), 0, 0);
  CHECK(bound.time == 4 * 9);
  CHECK(bound.reason == "the memory of rank 0 for 1 micro-batches of stage 0");
  CHECK(memory_time_bound(question, lanes_of(question).front(), 0).time == 4 * 9);
}

TEST_CASE("a cycle ends with the weight gradient, or with the input gradient where that frees a part") {
  // F = I = W = 1 on two ranks, two activations on rank 0, five micro-batches: two cycles before the last one
  // starts.
  OrderQuestion question = chain_question(2, 5, {.weight_grad = 1}, 2);
  const auto time = [&question] { return memory_cycle_bound(question, lanes_of(question).front(), 0, 0).time; };
  CHECK(time() == 2 * 5 + 5);  // F, F, I, I, W, twice, and the last one's
  question.memory = {.activation_bytes = {2, 2}, .released_at_input_grad_bytes = {1, 1}, .max_bytes = {4, 4}};
  CHECK(time() == 2 * 4 + 5);
}

TEST_CASE("a micro-batch enters a rank's last stage with room for all that it holds there") {
  // A loop of 4 ranks with two stages each, F = I = W = 1, and room for two activations: stage 0 of the next
  // micro-batch has to be free when one enters stage 4. From 4 to the end of W of stage 0, at 17, is a cycle of 13.
  OrderQuestion question{.frame = {.microbatches = 8, .stages = loop_placement(4, 8)},
                         .ranks = 4,
                         .costs = equal_costs({.weight_grad = 1}, 8)};
  question.memory = counted_activations(question, 2);
  const LowerBound bound = memory_cycle_bound(question, lanes_of(question).front(), 0, 4);
  CHECK(bound.time == 4 + 7 * 13 + 8 + 5);  // the way there, seven cycles, to the end and back, and down to stage 0
  CHECK(bound.time > memory_cycle_bound(question, lanes_of(question).front(), 0, 0).time);
  question.memory = counted_activations(question, 3);  // one more micro-batch may wait in stage 0
  CHECK(memory_cycle_bound(question, lanes_of(question).front(), 0, 4).time == 4 + 3 * 13 + 1 + 8 + 5);
}

TEST_CASE("activations of all stages of a rank share its memory") {
  // A V of two ranks with F = I = W = 1. A micro-batch stays from 0 to the end of W at 9 in stage 0, and for
  // 3 in stage 3.
  OrderQuestion question{.frame = {.microbatches = 4, .stages = snake_placement(2, 4)},
                         .ranks = 2,
                         .costs = equal_costs({.weight_grad = 1}, 4)};
  question.memory = counted_activations(question, 2);
  CHECK(memory_time_bound(question, lanes_of(question).front(), 0).time == 4 * (9 + 3) / 2);
  question.memory = counted_activations(question, 0);
  CHECK(memory_time_bound(question, lanes_of(question).front(), 0).time == 0);
}

}  // namespace plumb::test
