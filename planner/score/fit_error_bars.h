#pragma once
// The spread of predictions' errors, fitted on the residuals of published runs, and judged on runs that it has not seen.
//
//   std::vector<Residual> residuals = residuals_of(scores);
//   ErrorBars bars = fit_error_bars(residuals);                       // evaluate/error_bar.h
//   for (const LeftOutGroup& group : judge_error_bars(residuals, LeftOutBy::kSource)) say(group.coverage_ratio);
//
// A group of residuals is what one source prints with one knowledge of the framework. Every group weighs alike, however
// many rows it has.

#include <string>
#include <string_view>
#include <vector>

#include "planner/evaluate/error_bar.h"
#include "planner/score/error_statistics.h"
#include "planner/score/score.h"

namespace plumb { inline namespace planner {

/// One measurement against its prediction.
struct Residual {
  std::string source;  ///< who printed it
  std::string stack;   ///< the framework for which it was predicted
  ErrorTraits traits;
  bool of_memory = false;  ///< a rank's peak; otherwise a step's time
  double log_error = 0;    ///< log(measured / predicted)
};

/// Returns the residuals of step times and memory.
std::vector<Residual> residuals_of(const std::vector<SourceScore>& scores);

/// Fits both quantities. `shift` is the weighted median of a framework's groups, drawn towards 0 where there are few;
/// the scale is that of a Laplace distribution by maximum likelihood, with its terms drawn towards 0; `factor` is
/// conformal (Vovk et al. 2005): 80 % of the weighted residuals lie within it. Where nothing is known of Plumb's own
/// executor its scale is that of unknown frameworks.
ErrorBars fit_error_bars(const std::vector<Residual>& residuals);

enum class LeftOutBy { kSource, kFramework, kDevice };

/// Reads "each-source", "each-framework" or "each-device". Throws SpecError for other texts.
LeftOutBy parse_left_out_by(std::string_view text);

/// The rows of one group that were left out of the fit that judges them.
struct LeftOutGroup {
  std::string left_out;  ///< the source, framework or device
  std::string source;
  FrameworkKnown framework = FrameworkKnown::kNamed;
  bool of_memory = false;
  ErrorStatistics errors;            ///< of the predictions
  double coverage_ratio = 0;         ///< share of the rows that lie in their intervals
  double median_half_width_pct = 0;  ///< half of an interval's length over the prediction
};

/// Judges each source (framework, device) by a fit on all others. Sorted by quantity, framework and name.
std::vector<LeftOutGroup> judge_error_bars(const std::vector<Residual>& residuals, LeftOutBy by);

/// The groups of one quantity, each with the same weight.
struct LeftOutSummary {
  int groups = 0;
  double mean_pct = 0;  ///< mean of the groups' mean errors
  double bias_pct = 0;
  double coverage_ratio = 0;
  double median_half_width_pct = 0;  ///< median of the groups' medians
  double median_error_pct = 0;       ///< the same of the errors
};
LeftOutSummary summary_of(const std::vector<LeftOutGroup>& groups);

}}  // namespace plumb::planner
