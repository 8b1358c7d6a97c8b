#include "tools/runs/priced_kind.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("what the planner prices of an executor's collectives has the same name there") {
  CHECK(priced_kind(CollectiveOp::kAllReduce) == CollectiveKind::kAllReduce);
  CHECK(priced_kind(CollectiveOp::kAllGather) == CollectiveKind::kAllGather);
  CHECK(priced_kind(CollectiveOp::kReduceScatter) == CollectiveKind::kReduceScatter);
  CHECK(priced_kind(CollectiveOp::kAllToAll) == CollectiveKind::kAllToAll);
  CHECK(priced_kind(CollectiveOp::kBroadcast) == CollectiveKind::kBroadcast);
  CHECK_FALSE(priced_kind(CollectiveOp::kShift));
  CHECK_FALSE(priced_kind(CollectiveOp::kReduce));
}

}  // namespace plumb::test
