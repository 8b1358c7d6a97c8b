#pragma once
// How far predictions are from what was measured, and whether they put layouts in the right order.

#include <string>
#include <vector>

namespace plumb { inline namespace planner {

/// 100 (predicted / measured - 1), by size (mean, median, worst) and with its sign (bias, their mean).
struct ErrorStatistics {
  int count = 0;
  double mean_pct = 0;
  double median_pct = 0;
  double worst_pct = 0;
  double bias_pct = 0;
};

/// `errors_pct` with their signs; all zero where there are none.
ErrorStatistics error_statistics(const std::vector<double>& errors_pct);

/// Spearman's rank correlation, equal values sharing their mean rank (Spearman 1904). Both lists are of the same
/// length, 2 or more; 0 where all values of a list are equal.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

/// How much slower, in per cent, what the prediction would choose is than the best that was measured. Lists of the same
/// length, not empty; smaller is better, and the first of equal predictions is chosen.
double top1_regret_pct(const std::vector<double>& predicted, const std::vector<double>& measured);

}}  // namespace plumb::planner
