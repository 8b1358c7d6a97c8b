#pragma once
// Sleeps until a moment, as exactly as the system allows.
//
// clock_nanosleep to an absolute time does not drift. With a timer slack of one nanosecond it oversleeps 15 to 25
// microseconds on Linux (60 to 75 with the default slack).

#include <cstdint>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// CLOCK_MONOTONIC counted from an origin, and sleeping by the same count.
class Sleeper {
 public:
  /// Counts from the moment of its construction.
  Sleeper();

  /// Counts from that reading of CLOCK_MONOTONIC, which all processes of a machine share.
  explicit Sleeper(std::int64_t origin_ns) : origin_ns_(origin_ns) {}

  std::int64_t origin_ns() const { return origin_ns_; }

  /// Returns the time since the origin.
  SimTime now() const;

  /// Returns at `moment` or later; at once if it has passed. The calling thread's timer slack is set to the least.
  void sleep_until(SimTime moment) const;

 private:
  std::int64_t origin_ns_ = 0;
};

/// Asks the system to wake the calling thread before others (SCHED_FIFO, its lowest priority). Where that is refused,
/// as to most users, the thread goes on as it is, and wakes late on a busy machine.
void ask_for_prompt_waking();

}}  // namespace plumb::executor
