#include "planner/logs/median_estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plumb { inline namespace planner {

MedianEstimate median_of(std::vector<double> values) {
  if (values.empty()) return {};
  constexpr double kMedianOverMean = 1.2533;  // sqrt(pi / 2)
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  MedianEstimate estimate{.observations = static_cast<int>(values.size())};
  estimate.value = (values[middle] + values[values.size() % 2 == 1 ? middle : middle - 1]) / 2;
  if (values.size() > 1) estimate.standard_error = kMedianOverMean * std::sqrt(squares / (count - 1) / count);
  return estimate;
}

}}  // namespace plumb::planner
