#pragma once
// Clocks that measured times are read from. A test may give a clock of its own.

#include <chrono>
#include <functional>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Returns the time now, counted from an origin that one clock keeps.
using Clock = std::function<SimTime()>;

/// Returns a clock that reads CLOCK_MONOTONIC and counts from the moment of this call.
inline Clock monotonic_clock() {
  const auto origin = std::chrono::steady_clock::now();
  return [origin] { return std::chrono::duration_cast<SimTime>(std::chrono::steady_clock::now() - origin); };
}

}}  // namespace plumb::executor
