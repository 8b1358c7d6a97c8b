#include "schedules/time.h"

#include <cmath>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace schedules {

namespace {

constexpr double kPicosecondsPerSecond = SimTime::period::den;

}  // namespace

bool is_simulable(Seconds cost) {
  const double picoseconds = cost.count() * kPicosecondsPerSecond;
  return picoseconds >= 0 && picoseconds <= static_cast<double>(kLongestCost.count());
}

SimTime to_sim_time(Seconds cost, std::string_view of) {
  if (!is_simulable(cost)) {
    throw SpecError(fmt::format("{} of {} s cannot be simulated: give a finite time from 0 to {:.3g} s", of,
                                cost.count(), seconds(kLongestCost)));
  }
  return SimTime{std::llround(cost.count() * kPicosecondsPerSecond)};
}

SimTime checked_sum(SimTime a, SimTime b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a.count(), b.count(), &sum)) {
    throw SpecError(
        fmt::format("times of {} s and {} s add up to more than the {:.3g} s that can be told: give "
                    "shorter ones",
                    seconds(a), seconds(b), seconds(SimTime::max())));
  }
  return SimTime{sum};
}

void refuse_late_moment(std::string_view what, std::string_view because) {
  throw SpecError(
      fmt::format("{} would end after the {:.3g} s that can be simulated{}{}: give shorter costs, as in a "
                  "smaller unit, or fewer micro-batches",
                  what, seconds(kLatestMoment), because.empty() ? "" : ", ", because));
}

Seconds to_seconds(SimTime time) {
  return std::chrono::duration_cast<Seconds>(time);
}

}}  // namespace plumb::schedules
