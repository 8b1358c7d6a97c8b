#pragma once
// The median of the repeats of one measurement.

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace executor {

/// Returns the median; of an even number of times the upper of the two in the middle. Asserts that there is one.
inline Seconds median_of(std::vector<Seconds> times) {
  assert(!times.empty());
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

}}  // namespace plumb::executor
