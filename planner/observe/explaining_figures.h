#pragma once
// Which figure of the cluster, if it alone were other than assumed, would make the plan's step last as long as the
// run's.
//
//   for (const ExplainingFigure& by : explaining_figures(plan, evaluate(plan), run)) by.figure, by.factor

#include <optional>
#include <string>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/observe/observed_run.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace planner {

struct ExplainingFigure {
  std::string figure;  ///< its key in a cluster's file, as "network.bandwidth_gb_per_s"
  double factor = 1;   ///< the figure times this gives the measured step
  /// One standard error of the factor, from that of the measured step; nothing where the step has none.
  std::optional<double> standard_error;
  /// Root mean square of log(predicted / measured) that is left over the parts of the step which the run timed; nothing
  /// where it timed none. The figure with the least explains best where the time went.
  std::optional<double> left_over;
};

/// Returns the figures that explain the step within kMostFactor either way: those that leave least first, and where
/// nothing else was timed, those that must be least other than assumed. Each is found by bisection with some ten
/// simulations. Empty where the prediction is the measured step already.
std::vector<ExplainingFigure> explaining_figures(const Plan& plan, const Evaluation& evaluation,
                                                 const ObservedRun& run);

/// A figure that would have to be more than so many times what is assumed explains nothing.
inline constexpr double kMostFactor = 8;

}}  // namespace plumb::planner
