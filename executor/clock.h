#pragma once
// Where measured time comes from. A test may give a clock of its own.

#include <chrono>
#include <functional>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// The time now, from an origin that one clock keeps.
using Clock = std::function<SimTime()>;

/// CLOCK_MONOTONIC from the moment of this call on.
inline Clock monotonic_clock() {
  const auto origin = std::chrono::steady_clock::now();
  return [origin] { return std::chrono::duration_cast<SimTime>(std::chrono::steady_clock::now() - origin); };
}

}}  // namespace plumb::executor
