#pragma once
// This file tells whether a step's derivatives say anything. Transfers that share links follow each other so closely
// that a picosecond may decide who is first; then the step is a different one, and derivatives grow without limit from
// there on. How far that goes is their condition number; what the step is worth instead is how it spreads when its
// durations move.

#include "schedules/schedule.h"
#include "simulator/network/network_sensitivity.h"

namespace plumb { inline namespace simulator {

/// Above it a step is ill-conditioned: a tenth of every cost would be as much as the step itself.
inline constexpr double kMostConditioning = 10;

/// The shortest and the longest of several simulations.
struct StepSpread {
  SimTime shortest{0};
  SimTime longest{0};
};

struct Conditioning {
  /// The sum of |derivative * number| over all costs and capacities, over the makespan: by so many times its own share
  /// the step changes at most when each number changes by one small share. 1 along a critical path.
  double number = 1;
  bool is_ill = false;  ///< above kMostConditioning, or not finite
  // An ill-conditioned step is simulated `runs` times, each duration longer by a random time from 0 to so much.
  int runs = 0;
  StepSpread by_picosecond;  ///< a picosecond
  StepSpread by_per_mille;   ///< a thousandth of itself
};

/// Returns that of a simulation of `lowered`. The runs have seeds 1, 2, ...; a step that is not ill-conditioned has
/// none.
Conditioning conditioning_of(const Schedule& lowered, const NetworkGradient& gradient);

}}  // namespace plumb::simulator
