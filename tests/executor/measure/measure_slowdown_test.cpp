#include "executor/measure/measure_slowdown.h"

#include <doctest/doctest.h>

#include "schedules/error.h"

using namespace plumb;

TEST_CASE("what is lost of the time in which both run says how much slower compute is then") {
  // Of 2 s beside a collective compute did 1.5 s of work: it ran at 1 / (1 + 1/3). The other 3 s were as alone.
  const SlowdownSample sample{.alone = Seconds{4.5}, .beside = Seconds{5}, .collective = Seconds{2}};
  CHECK(*slowdown_of(sample) == doctest::Approx(1.0 / 3));
  CHECK(*slowdown_of({.alone = Seconds{5}, .beside = Seconds{4.9}, .collective = Seconds{2}}) == 0);
  CHECK(!slowdown_of({.alone = Seconds{3}, .beside = Seconds{5}, .collective = Seconds{2}}));
}

TEST_CASE("the slowdown beside an all-reduce is measured on this machine") {
  const SlowdownSample sample = measure_collective_slowdown({.members = 2, .bytes = 1 << 16, .budget = Seconds{0.05}});
  CHECK(sample.repeats >= 3);
  CHECK(sample.alone > Seconds{0});
  CHECK(sample.beside > Seconds{0});
  CHECK(sample.collective > Seconds{0});
  CHECK_THROWS_AS(measure_collective_slowdown({.members = 1}), SpecError);
  CHECK_THROWS_AS(measure_collective_slowdown({.bytes = 0}), SpecError);
}
