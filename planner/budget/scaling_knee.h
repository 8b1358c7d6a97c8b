#pragma once
// The number of devices beyond which more of them help little.

#include <optional>
#include <vector>

namespace plumb { inline namespace planner {

struct ScalingPoint {
  double devices = 0;
  double rate = 0;  ///< of useful tokens
};

/// Below it, 1 % more devices give less than half a per cent more tokens a second.
inline constexpr double kKneeElasticity = 0.5;

/// Returns d ln(rate) / d ln(devices) between two points: 1 where all devices help, 0 where the last ones do not.
double scaling_elasticity(const ScalingPoint& fewer, const ScalingPoint& more);

/// Returns the index of the first point behind which the elasticity falls below kKneeElasticity; nothing if it does
/// nowhere. Points come by ascending devices. Those below the upper concave hull of ln(rate) over ln(devices) are passed
/// over: numbers of devices that the model divides badly, beside better ones.
std::optional<std::size_t> scaling_knee(const std::vector<ScalingPoint>& points);

}}  // namespace plumb::planner
