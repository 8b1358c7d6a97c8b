#pragma once
// A search makes a value least: the step time, or what follows from it.
//
//   SearchObjective least_time;                    // the seconds of a step
//   least_time.value(evaluation)                   // of a layout that was evaluated
//   least_time.bound(layout, {.step = at_least})   // of one of which less is known

#include <functional>

#include "planner/evaluate/evaluation.h"
#include "planner/spec/cluster_spec.h"
#include "schedules/time.h"
#include "simulator/noise/noise.h"

namespace plumb { inline namespace planner {

/// The times that are known of a layout's step before it is evaluated.
struct LeastTimes {
  SimTime step{0};  ///< it lasts so long or longer
  SimTime busy{0};  ///< its ranks compute for so long or longer, on average
};

/// Threads may call both at the same time.
struct SearchObjective {
  /// Returns the value of an evaluated layout.
  std::function<double(const Evaluation&)> value = [](const Evaluation& evaluation) {
    return seconds(evaluation.simulation.makespan);
  };
  /// Returns a value that is not above that of any layout with these degrees and such a step. It never falls as one of
  /// the times grows.
  std::function<double(const Layout&, const LeastTimes&)> bound = [](const Layout&, const LeastTimes& least) {
    return seconds(least.step);
  };
};

/// The mean time for which the ranks of a step compute.
SimTime mean_busy(const Simulation& simulation);

/// The dollars of a step (spec/operating_spec.h). Throws SpecError if the cluster has no price.
SearchObjective least_cost(const ClusterSpec& cluster);

/// The joules of a step (spec/operating_spec.h). Throws SpecError if the cluster has no powers.
SearchObjective least_energy(const ClusterSpec& cluster);

/// Runs under noise that say enough of their slowest twentieth.
inline constexpr int kLeastRuns = 100;

/// The seconds that 95 % of steps do not exceed under that noise. Its bound is that of a step without noise: factors
/// have mean 1, and the sum of a path's durations is above its mean in more than a twentieth of the runs. Throws
/// SpecError for fewer runs than kLeastRuns.
SearchObjective least_slow_step(const NoiseSpec& noise);

}}  // namespace plumb::planner
