#pragma once
// Time in Plumb has two types: `Seconds` (double) for costs, and `SimTime` (integer picoseconds) for anything a
// simulator or an executor puts on a timeline. Integer time makes closed forms testable with `==` and results
// independent of the order of additions. One function converts.

#include <chrono>
#include <cstdint>
#include <ratio>

namespace plumb { inline namespace schedules {

/// A cost: what a kernel, a message or a step is estimated to last.
using Seconds = std::chrono::duration<double>;

/// A point on (or a distance along) a timeline. Range: +-9.2e6 s, about 106 days.
using SimTime = std::chrono::duration<std::int64_t, std::pico>;

/// `cost` rounded to the nearest picosecond, ties away from zero.
/// Throws SpecError if it is not finite, is negative, or exceeds a quarter of SimTime's range (sums must stay
/// representable).
SimTime to_sim_time(Seconds cost);

/// The same time as a double in seconds (exact up to 2^53 ps = 2.5 hours).
Seconds to_seconds(SimTime time);

/// The same as a number, to be printed.
inline double seconds(SimTime time) {
  return to_seconds(time).count();
}

}}  // namespace plumb::schedules
