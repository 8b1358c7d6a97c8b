#include "schedules/action.h"

#include <doctest/doctest.h>

using namespace plumb;

TEST_CASE("every operation's token reads back as the same action") {
  for (int op = 0; op < kOpCount; ++op) {
    Action action{.op = static_cast<Op>(op), .part = 2, .stage = 13};
    if (has_microbatch(action.op)) action.microbatch = 29;
    CHECK(parse_action(to_text(action)) == action);
  }
}
