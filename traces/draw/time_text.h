#pragma once
// Writes times for readers.

#include <string>

#include "schedules/time.h"

namespace plumb { inline namespace traces {

/// Returns the time with at most five significant digits and the largest unit that keeps the number at 1 or above: "33
/// s", "213.12 s", "1.5 ms", "740 ps", "-2 us". Whole seconds beyond five digits are kept whole.
std::string time_text(SimTime time);

}}  // namespace plumb::traces
