#include "schedules/bounds/order_question.h"

#include <doctest/doctest.h>

#include "tests/schedules/order_questions.h"
#include "tests/schedules/text_rows.h"

namespace plumb::test {

TEST_CASE("an activation is held from its forward on, and freed in part by I and for the rest by W") {
  const ActivationMemory memory{.activation_bytes = {10}, .released_at_input_grad_bytes = {4}, .max_bytes = {16}};
  CHECK(peak_bytes(memory, rows("0F0 0I0 0F1 0W0 0I1 0W1")[0]) == 16);  // 6 of micro-batch 0 and 10 of 1
  CHECK(peak_bytes(memory, rows("0F0 0F1 0I0 0W0 0I1 0W1")[0]) == 20);
  CHECK(peak_bytes(memory, rows("0F0 0B0 0F1 0B1")[0]) == 10);
}

TEST_CASE("an order fits if no rank holds more than it may, and any order does without a limit") {
  const Schedule gpipe{.microbatches = 2, .stages = loop_placement(1, 1), .ranks = rows("0F0 0F1 0B0 0B1")};
  CHECK(fits_memory(question_of(gpipe, equal_costs({}, 1), 2), gpipe));
  CHECK_FALSE(fits_memory(question_of(gpipe, equal_costs({}, 1), 1), gpipe));
  CHECK(fits_memory(question_of(gpipe, equal_costs({}, 1)), gpipe));
}

}  // namespace plumb::test
