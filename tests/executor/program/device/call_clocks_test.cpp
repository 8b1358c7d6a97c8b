#include "executor/program/device/call_clocks.h"

#include <doctest/doctest.h>

namespace plumb::test { namespace {

using enum DeviceStream;

TEST_CASE("call clocks: a stream runs in order, others do not wait") {
  CallClocks clocks(2);
  clocks.add({.rank = 0, .stream = kCompute});
  clocks.add({.rank = 0, .stream = kCompute});
  clocks.add({.rank = 0, .stream = kCopy});
  clocks.add({.rank = 1, .stream = kCompute});
  CHECK(clocks.precedes(0, 1));
  CHECK_FALSE(clocks.precedes(1, 0));
  CHECK_FALSE(clocks.precedes(1, 1));
  CHECK_FALSE(clocks.precedes(0, 2));
  CHECK_FALSE(clocks.precedes(0, 3));
}

TEST_CASE("call clocks: a wait carries all that the awaited call stands behind") {
  CallClocks clocks(3);
  clocks.add({.rank = 0, .stream = kCompute});
  clocks.add({.rank = 0, .stream = kSendActivation, .waits = {{.call = 0}}});
  clocks.add({.rank = 1, .stream = kCompute, .waits = {{.call = 1}}});
  clocks.add({.rank = 2, .stream = kCompute});
  clocks.add({.rank = 2, .stream = kCompute, .waits = {{.call = 2}}});
  CHECK(clocks.precedes(0, 4));
  CHECK(clocks.precedes_newest(0));
  CHECK_FALSE(clocks.precedes(0, 3));
}

TEST_CASE("call clocks: a moment inside a call is not its end") {
  CallClocks clocks(1);
  clocks.add({.rank = 0, .stream = kCompute});
  clocks.add({.rank = 0, .stream = kCompute});
  clocks.add({.rank = 0, .stream = kReduce, .waits = {{.call = 1, .bucket = 0}}});
  CHECK(clocks.precedes(0, 2));
  CHECK_FALSE(clocks.precedes(1, 2));
}

}}  // namespace plumb::test
