#include "executor/transport/emulated/sleeper.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("nobody wakes before the moment") {
  const Sleeper sleeper;
  SimTime moment = sleeper.now();
  for (int i = 0; i < 20; ++i) {
    moment += to_sim_time(Seconds{3e-4});
    sleeper.sleep_until(moment);
    CHECK(sleeper.now() >= moment);
  }
}

TEST_CASE("a moment that has passed is not waited for") {
  const Sleeper sleeper;
  const SimTime before = sleeper.now();
  sleeper.sleep_until(SimTime{0});
  CHECK(sleeper.now() >= before);
}

}  // namespace plumb::test
