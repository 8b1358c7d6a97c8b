#pragma once
// The time that stands for repeats of one measurement.

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// The upper one of the two in the middle, of an even number. Asserts that there is one.
inline Seconds median_of(std::vector<Seconds> times) {
  assert(!times.empty());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

}}  // namespace plumb::executor
