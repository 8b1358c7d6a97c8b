#pragma once
// Constants of devices, clusters and stacks are fitted on one half of published rows and judged on the other.
//
//   fit_constants(library, files, {parse_fit_constant("cluster.device.gemm_efficiency=0.6,0.95")}, Holdout::kModel)
//
// The halves share no model (or no layout), so that copies of one measurement never stand in both.

#include <string>
#include <string_view>
#include <vector>

#include "planner/score/error_statistics.h"
#include "planner/score/minimise.h"
#include "planner/score/score.h"

namespace plumb { inline namespace planner {

/// A figure of every cluster or stack to which the rows are mapped, and the interval in which it is sought.
struct FitConstant {
  std::string path;  ///< "cluster.device.gemm_efficiency", "stack.kernel_launch_us"
  Interval interval;
};

/// Reads "PATH=LOW,HIGH". Throws SpecError unless the path begins with "cluster." or "stack." and LOW < HIGH.
FitConstant parse_fit_constant(std::string_view text);

/// The rows that are left out of the fit: whole models, whole layouts (degrees, micro-batch and devices), the second
/// half of the rows in their order, or in turn each family of models (the letters with which a model's name begins),
/// each source, framework or device.
enum class Holdout { kModel, kLayout, kHalf, kEachFamily, kEachSource, kEachFramework, kEachDevice };

/// Reads "model", "layout", "half", "each-family", "each-source", "each-framework" or "each-device". Throws SpecError
/// for other texts.
Holdout parse_holdout(std::string_view text);

/// The fold that leaves one group out: constants fitted on the others, and their errors on it.
struct FitFold {
  std::string left_out;
  std::vector<double> fitted;  ///< [constant]
  ErrorStatistics preset_unseen;
  ErrorStatistics unseen;
};

/// If each group is left out in turn, the fitted values are the means of the folds'. A row counts once as unseen, and as
/// seen as often as it was fitted.
struct FitResult {
  std::vector<FitConstant> constants;
  std::vector<double> preset;  ///< [constant] value of the presets
  std::vector<double> fitted;  ///< [constant]
  ErrorStatistics zero_seen;   ///< errors of the presets' constants on the rows that were then fitted
  ErrorStatistics zero_unseen;
  ErrorStatistics fitted_seen;
  ErrorStatistics fitted_unseen;
  int seen_groups = 0;
  int unseen_groups = 0;
  std::vector<FitFold> folds;  ///< where each group is left out in turn
};

/// Minimises the mean |log(predicted / measured)| of step and layer times of the seen half. Throws SpecError if there
/// are more than five constants, no row can be predicted, there is one group only (nothing is left for judging), a path
/// names no figure, or an efficiency comes out at 1 or above: then the mapping of the rows is wrong.
FitResult fit_constants(const ScoreLibrary& library, const std::vector<PublishedRows>& files,
                        const std::vector<FitConstant>& constants, Holdout holdout);

}}  // namespace plumb::planner
