#include "planner/spec/context_kind.h"

#include <doctest/doctest.h>

#include "schedules/error.h"
#include "tests/planner/refusal.h"

namespace plumb::test {

TEST_CASE("kinds of context parallelism have names, and other names are refused with these") {
  for (const std::string& name : context_kind_names()) CHECK(context_kind_name(context_kind_from_name(name)) == name);
  CHECK(context_kind_from_name("ulysses") == ContextKind::kUlysses);
  check_refused<SpecError>([] { context_kind_from_name("p2p"); }, "p2p", "ring, all-gather, ulysses");
}

}  // namespace plumb::test
