#include "planner/spec/offload.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("every offload has a name, which is read back") {
  CHECK(offload_name({}) == "none");
  CHECK(offload_from_name("none") == Offload{});
  CHECK(offload_names().size() == all_offloads().size() + 1);
  for (const Offload& offload : all_offloads()) {
    CHECK(offload != Offload{});
    CHECK(offload_from_name(offload_name(offload)) == offload);
  }
  check_refused<SpecError>([] { offload_from_name("cpu"); }, "offload=cpu", "optimizer+activations");
}

}  // namespace plumb::test
