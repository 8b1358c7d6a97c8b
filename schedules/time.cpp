#include "schedules/time.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb { inline namespace schedules {

SimTime to_sim_time(Seconds cost) {
  constexpr double kPicosecondsPerSecond = 1e12;
  constexpr double kLimit = static_cast<double>(std::numeric_limits<std::int64_t>::max()) / 4;
  const double picoseconds = cost.count() * kPicosecondsPerSecond;
  if (!(picoseconds >= 0) || picoseconds > kLimit) {
    throw SpecError(fmt::format("a time of {} s cannot be simulated: give a finite time from 0 to {:.3g} s",
                                cost.count(), kLimit / kPicosecondsPerSecond));
  }
  return SimTime{std::llround(picoseconds)};
}

Seconds to_seconds(SimTime time) {
  return std::chrono::duration_cast<Seconds>(time);
}

}}  // namespace plumb::schedules
