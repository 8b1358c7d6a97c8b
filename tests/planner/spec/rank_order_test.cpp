#include "planner/spec/rank_order.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("orders of ranks have names, and other names are refused with these") {
  for (const std::string& name : rank_order_names()) CHECK(rank_order_name(rank_order_from_name(name)) == name);
  CHECK(rank_order_from_name("tp-cp-pp-dp") == RankOrder::kReplicasApart);
  check_refused<SpecError>([] { rank_order_from_name("pp-dp"); }, "pp-dp", "tp-cp-dp-pp or tp-cp-pp-dp");
}

}  // namespace plumb::test
