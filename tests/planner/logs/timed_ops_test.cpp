#include "planner/logs/timed_ops.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("a timer adds up operations of the schedule, or none that it has") {
  CHECK(timed_ops("forward-compute") == std::vector<Op>{Op::kForward});
  CHECK(timed_ops("forward-step") == timed_ops("fwd"));
  CHECK(timed_ops("backward-step") == timed_ops("bwd_inner"));
  CHECK(timed_ops("all-grads-sync") == std::vector<Op>{Op::kReduceGrad});
  CHECK(timed_ops("batch-generator").empty());
}

}  // namespace plumb::test
