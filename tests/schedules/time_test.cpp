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

TEST_CASE("a refusal names what has the time") {
  CHECK_THROWS_WITH_AS(to_sim_time(Seconds{1e9}, "--costs: a f="),
                       "--costs: a f= of 1000000000 s cannot be simulated: give a finite time from 0 to 2.31e+06 s",
                       SpecError);
  CHECK_THROWS_WITH_AS(to_sim_time(Seconds{1e9}),
                       "a time of 1000000000 s cannot be simulated: give a finite time from 0 to 2.31e+06 s",
                       SpecError);
}

TEST_CASE("sums and casts of times do not wrap around") {
  CHECK(checked_sum(SimTime{1}, SimTime{2}) == SimTime{3});
  CHECK_THROWS_AS(checked_sum(SimTime::max(), SimTime{1}), SpecError);
  CHECK_THROWS_AS(checked_sum(SimTime::min(), SimTime{-1}), SpecError);
  CHECK(at_most_latest(12.9) == SimTime{12});
  for (const double late : {1e19, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    CHECK(at_most_latest(late) == kLatestMoment);
  CHECK(kLatestMoment + 2 * kLongestCost > kLatestMoment);  // still representable
}

}  // namespace plumb::test
