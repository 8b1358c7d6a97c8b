#pragma once
// Says how well the median of few measurements is known, without a guess about their distribution.

#include <vector>

#include "schedules/time.h"

namespace plumb { inline namespace traces {

/// The true median lies from `low` to `high` with that probability.
struct MedianInterval {
  SimTime low{0};
  SimTime high{0};
  double confidence_ratio = 0;
};

/// Returns an interval between two order statistics (Conover 1999, section 3.2): of n independent measurements the k-th
/// smallest and the k-th largest enclose the median with probability 1 - 2 P(Binomial(n, 1/2) < k). It is the narrowest
/// such interval of at least 95 %, or, for fewer than 6 measurements, the whole range with the probability that it has.
/// Asserts that there is a measurement.
MedianInterval median_interval(std::vector<SimTime> measured);

}}  // namespace plumb::traces
