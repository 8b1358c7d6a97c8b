#include "planner/evaluate/stage_order.h"

#include <doctest/doctest.h>

#include "planner/evaluate/layout_order.h"
#include "tests/planner/fixtures.h"

namespace plumb::test {

TEST_CASE("an order's operations and hops do not depend on its micro-batches") {
  const StageOrder few = stage_order(order_of({.global_batch = 8, .sequence = 512}, {.pipeline = 4}));
  const StageOrder many = stage_order(order_of({.global_batch = 64, .sequence = 512}, {.pipeline = 4}));
  CHECK(few.operations == many.operations);
  CHECK(few.hops == many.hops);
  CHECK(few.parts == 4);
  CHECK(!few.copies);
}

}  // namespace plumb::test
