#include "executor/measure/measure_slowdown.h"

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {

TEST_CASE("the slowdown beside an all-reduce is measured on this machine") {
  const SlowdownSample sample = measure_collective_slowdown({.members = 2, .bytes = 1 << 16, .budget = Seconds{0.05}});
  CHECK(sample.repeats >= 3);
  CHECK(sample.alone > Seconds{0});
  CHECK(sample.beside > Seconds{0});
  CHECK(sample.collective > Seconds{0});
  CHECK(sample.collective_alone > Seconds{0});
  CHECK_THROWS_AS(measure_collective_slowdown({.members = 1}), SpecError);
  CHECK_THROWS_AS(measure_collective_slowdown({.bytes = 0}), SpecError);
}

}  // namespace plumb::test
