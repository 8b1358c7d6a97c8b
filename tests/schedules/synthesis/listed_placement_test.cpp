#include "schedules/synthesis/listed_placement.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "schedules/bounds/lower_bound.h"
#include "schedules/rules/validate.h"
#include "schedules/search/catalogue_orders.h"
#include "schedules/synthesis/local_search.h"
#include "tests/schedules/order_questions.h"
#include "tests/schedules/random_questions.h"

namespace plumb::test {

TEST_CASE("every listed order is valid, within the memory, and no quicker than the bound, on any placement") {
  std::mt19937_64 random(31);
  int listed = 0;
  for (const char* placement : {"chain", "loop", "v", "wave", "bidirectional"}) {
    for (int k = 0; k < 4; ++k) {
      const OrderQuestion question = random_question(random, {.placement = placement, .ranks = 4, .microbatches = 7});
      const LowerBound bound = best_bound(question);
      CAPTURE(placement);
      CAPTURE(k);
      for (const Schedule& order : listed_orders(question)) {
        ++listed;
        CHECK(validate(order).empty());
        CHECK(fits_memory(question, order));
        CHECK(order_time(order, question) >= bound.time);
      }
    }
  }
  CHECK(listed > 100);
}

TEST_CASE(
    "with memory between a micro-batch and all of interleaved's, a loop's listed orders leave the serial one far") {
  OrderQuestion question{.frame = {.name = "loop", .microbatches = 16, .stages = loop_placement(4, 12)},
                         .ranks = 4,
                         .costs = equal_costs({.forward = 10, .input_grad = 20}, 12)};
  question.whole_backwards = true;
  question.memory = counted_activations(question, 10);  // interleaved holds 15 on rank 0, one micro-batch 3
  std::int64_t best = order_time(serial_order(question), question);
  CHECK(best == 16 * 12 * 30);
  for (const Schedule& order : listed_orders(question)) best = std::min(best, order_time(order, question));
  CHECK(best < 3 * 16 * 3 * 30);  // a rank's work is 16 * 3 * 30
}

}  // namespace plumb::test
