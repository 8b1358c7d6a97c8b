#pragma once
// The distance between predictions and measurements, and the agreement of their orders.

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

/// Returns the statistics of `errors_pct`, which have their signs; all zero where there are none.
ErrorStatistics error_statistics(const std::vector<double>& errors_pct);

/// Returns Spearman's rank correlation (Spearman 1904); equal values share their mean rank. Both lists have the same
/// length, 2 or more. Returns 0 where all values of a list are equal.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

/// Returns how much slower, in per cent, the prediction's choice is than the best measurement. The lists have the same
/// length and are not empty; smaller is better, and the first of equal predictions is chosen.
double top1_regret_pct(const std::vector<double>& predicted, const std::vector<double>& measured);

}}  // namespace plumb::planner
