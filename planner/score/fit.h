#pragma once
// Constants of devices, clusters and stacks fitted on one half of published rows and judged on the other.
//
//   fit_constants(library, files, {parse_fit_constant("cluster.device.gemm_efficiency=0.6,0.95")}, Holdout::kModel)
//
// The halves share no model (or no layout): rows that are copies of one measurement never stand in both.

#include <string>
#include <string_view>
#include <vector>

#include "planner/score/error_statistics.h"
#include "planner/score/minimise.h"
#include "planner/score/score.h"

namespace plumb { inline namespace planner {

/// A figure of every cluster or stack that the rows are mapped to, and between which values it is sought.
struct FitConstant {
  std::string path;  ///< "cluster.device.gemm_efficiency", "stack.kernel_launch_us"
  Interval interval;
};

/// "PATH=LOW,HIGH". Throws SpecError unless the path begins with "cluster." or "stack." and LOW < HIGH.
FitConstant parse_fit_constant(std::string_view text);

/// What is left out of the fit: whole models, whole layouts (degrees, micro-batch and devices), the second half of the
/// rows as they stand, or one family of models after the other (the letters that a model's name begins with).
enum class Holdout { kModel, kLayout, kHalf, kEachFamily };

/// "model", "layout", "half", "each-family". Throws SpecError for another.
Holdout parse_holdout(std::string_view text);

/// One family left out: what the others give, and how far off that is on it.
struct FitFold {
  std::string left_out;
  std::vector<double> fitted;  ///< [constant]
  ErrorStatistics preset_unseen;
  ErrorStatistics unseen;
};

/// With kEachFamily the fitted values are the means of the folds', and a row counts once as unseen and as often as it
/// was fitted as seen.
struct FitResult {
  std::vector<FitConstant> constants;
  std::vector<double> preset;  ///< [constant] as the presets have it
  std::vector<double> fitted;  ///< [constant]
  ErrorStatistics zero_seen;   ///< with the presets' constants, on the rows that were then fitted
  ErrorStatistics zero_unseen;
  ErrorStatistics fitted_seen;
  ErrorStatistics fitted_unseen;
  int seen_groups = 0;
  int unseen_groups = 0;
  std::vector<FitFold> folds;  ///< kEachFamily only
};

/// Minimises the mean |log(predicted / measured)| of step and layer times of the seen half. Throws SpecError if there
/// are more than five constants, no row can be predicted, there is one group only (nothing is left to judge on), a path
/// names no figure, or an efficiency comes out at 1 or above: then the mapping of the rows is wrong.
FitResult fit_constants(const ScoreLibrary& library, const std::vector<PublishedRows>& files,
                        const std::vector<FitConstant>& constants, Holdout holdout);

}}  // namespace plumb::planner
