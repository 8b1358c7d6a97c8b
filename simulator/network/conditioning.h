#pragma once
// Tells whether a step's derivatives say anything. Transfers that share links follow each other so closely that a
// picosecond may decide which is first; then the step is a different one, and derivatives grow without limit from there
// on. The condition number says how far that goes. An ill-conditioned step is described instead by how it spreads when
// its durations move.

#include "schedules/schedule.h"
#include "simulator/network/network_sensitivity.h"

namespace plumb { inline namespace simulator {

/// A step with a larger condition number is ill-conditioned: a tenth of every cost would be as much as the step itself.
inline constexpr double kMostConditioning = 10;

/// The shortest and the longest of several simulations.
struct StepSpread {
  SimTime shortest{0};
  SimTime longest{0};
};

struct Conditioning {
  /// The sum of |derivative * number| over all costs and capacities, divided by the makespan. When each number changes
  /// by one small share, the step changes by at most so many times that share of itself. It is 1 along a critical path.
  double number = 1;
  bool is_ill = false;  ///< true if `number` is above kMostConditioning, or not finite
  // An ill-conditioned step is simulated `runs` times, each duration longer by a random time from 0 to the one named.
  int runs = 0;
  StepSpread by_picosecond;  ///< with up to a picosecond more
  StepSpread by_per_mille;   ///< with up to a thousandth of itself more
};

/// Returns the conditioning of a simulation of `lowered`. The runs have seeds 1, 2, ...; a step that is not
/// ill-conditioned has none.
Conditioning conditioning_of(const Schedule& lowered, const NetworkGradient& gradient);

}}  // namespace plumb::simulator
