#pragma once
// The median of measurements, and how well it is known.

#include <optional>
#include <vector>

namespace plumb { inline namespace planner {

/// A median and one standard error of it: 1.2533 s / sqrt(n), the large-sample error for normal noise.
struct MedianEstimate {
  double value = 0;
  std::optional<double> standard_error;  ///< nothing for one observation
  int observations = 0;                  ///< of a long log more than the sample of which the error is
};
MedianEstimate median_of(std::vector<double> values);

}}  // namespace plumb::planner
