#include "schedules/time.h"

#include <limits>

#include <doctest/doctest.h>

#include "schedules/error.h"

namespace plumb::test {

TEST_CASE("seconds become the nearest picosecond") {
  CHECK(to_sim_time(Seconds{1}) == SimTime{1'000'000'000'000});
  CHECK(to_sim_time(Seconds{1.4e-12}) == SimTime{1});
  CHECK(to_sim_time(Seconds{1.5e-12}) == SimTime{2});
  CHECK(to_seconds(SimTime{500'000'000'000}) == Seconds{0.5});
}

TEST_CASE("what no timeline can hold is refused") {
  CHECK_THROWS_AS(to_sim_time(Seconds{-1e-12}), SpecError);
  CHECK_THROWS_AS(to_sim_time(Seconds{1e9}), SpecError);
  CHECK_THROWS_AS(to_sim_time(Seconds{std::numeric_limits<double>::quiet_NaN()}), SpecError);
  CHECK_THROWS_AS(to_sim_time(Seconds{std::numeric_limits<double>::infinity()}), SpecError);
}

}  // namespace plumb::test
