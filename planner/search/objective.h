#pragma once
// The quantity that a search makes least.
//
//   SearchObjective least_time;                                  // the seconds of a step
//   least_time.value(evaluation)                           // of a layout that was evaluated
//   least_time.bound(layout, step_time_lower_bound(...))   // of one of which less is known

#include <functional>

#include "planner/evaluate/evaluation.h"
#include "planner/spec/layout.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct SearchObjective {
  /// Returns the value of an evaluated layout.
  std::function<double(const Evaluation&)> value = [](const Evaluation& evaluation) {
    return seconds(evaluation.simulation.makespan);
  };
  /// Returns a value that is not above that of any layout with these degrees whose step takes that time or longer. It
  /// never falls as the time grows.
  std::function<double(const Layout&, SimTime)> bound = [](const Layout&, SimTime time) { return seconds(time); };
};

}}  // namespace plumb::planner
