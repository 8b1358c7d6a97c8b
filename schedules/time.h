#pragma once
// Time in Plumb has two types: `Seconds` (double) for costs, and `SimTime` (integer picoseconds) for anything a
// simulator or an executor puts on a timeline. Integer time makes closed forms testable with `==` and results
// independent of the order of additions. One function converts.

#include <chrono>
#include <cstdint>
#include <ratio>
#include <string_view>

namespace plumb { inline namespace schedules {

/// A cost: the estimated length of a kernel, a message or a step.
using Seconds = std::chrono::duration<double>;

/// A point on (or a distance along) a timeline. Its range is +-9.2e6 s, about 106 days.
using SimTime = std::chrono::duration<std::int64_t, std::pico>;

/// The longest that one cost may last is a quarter of SimTime's range (27 days). The latest moment that an engine
/// simulates is half of the range (53 days). A moment and two costs behind it are therefore always representable. An
/// engine that would come further refuses with refuse_late_moment.
inline constexpr SimTime kLongestCost = SimTime::max() / 4;
inline constexpr SimTime kLatestMoment = 2 * kLongestCost;

/// True for the costs that to_sim_time takes.
bool is_simulable(Seconds cost);

/// Returns `cost` rounded to the nearest picosecond, ties away from zero. Throws SpecError if it is not finite, is
/// negative, or exceeds kLongestCost. `of` names the thing that has the cost, with the place where it was given:
/// "--costs: f", "F of stage 3".
SimTime to_sim_time(Seconds cost, std::string_view of = "a time");

/// Returns that many picoseconds, which the caller has rounded, or kLatestMoment if they are more.
inline SimTime at_most_latest(double picoseconds) {
  constexpr auto kMost = static_cast<double>(kLatestMoment.count());
  return picoseconds < kMost ? SimTime{static_cast<std::int64_t>(picoseconds)} : kLatestMoment;
}

/// Returns a + b. Throws SpecError if SimTime does not hold it.
SimTime checked_sum(SimTime a, SimTime b);

/// Throws the SpecError of an engine whose `what` ("the step", "1B3 of replica 0") would end after kLatestMoment.
/// `because` names what is long, and is "" where that is not known.
[[noreturn]] void refuse_late_moment(std::string_view what, std::string_view because = "");

/// Returns the time as a double in seconds (exact up to 2^53 ps = 2.5 hours).
Seconds to_seconds(SimTime time);

/// Returns the time in seconds as a number, to be printed.
inline double seconds(SimTime time) {
  return to_seconds(time).count();
}

}}  // namespace plumb::schedules
