#include "executor/measure/slowdown_sample.h"

#include <doctest/doctest.h>

namespace plumb::test {

TEST_CASE("what is lost of the time in which both run says how much slower compute is then") {
  // Compute did 1.5 s of work in the 2 s beside a collective: it ran at 1 / (1 + 1/3). The other 3 s were as alone.
  const SlowdownSample sample{.alone = Seconds{4.5}, .beside = Seconds{5}, .collective = Seconds{2}};
  CHECK(*slowdown_of(sample) == doctest::Approx(1.0 / 3));
  CHECK(*slowdown_of({.alone = Seconds{5}, .beside = Seconds{4.9}, .collective = Seconds{2}}) == 0);
  CHECK(!slowdown_of({.alone = Seconds{3}, .beside = Seconds{5}, .collective = Seconds{2}}));
}

TEST_CASE("a collective that outlasts the products is beside them for as long as they last") {
  const SlowdownSample sample{.alone = Seconds{3}, .beside = Seconds{4}, .collective = Seconds{9}};
  CHECK(*slowdown_of(sample) == doctest::Approx(1.0 / 3));
}

}  // namespace plumb::test
