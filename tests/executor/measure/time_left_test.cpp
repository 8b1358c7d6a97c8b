#include "executor/measure/time_left.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("what is left of a time shrinks from its making on, below zero too") {
  const TimeLeft hour(Seconds{3600}), none(Seconds{0});
  const Seconds first = hour(), second = hour();
  CHECK(first <= Seconds{3600});
  CHECK(second <= first);
  CHECK(hour(0.5) <= Seconds{1800});
  CHECK(none() <= Seconds{0});
}

}  // namespace plumb::test
