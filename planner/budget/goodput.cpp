#include "planner/budget/goodput.h"

#include <cmath>

namespace plumb { inline namespace planner {

double goodput(const Interruptions& interruptions, Seconds interval) {
  const double m = interruptions.mean_between.count(), segment = (interval + interruptions.checkpoint).count();
  if (std::isinf(m)) return std::isinf(segment) ? 1 : interval.count() / segment;
  return interval.count() / (m * std::exp(interruptions.restart.count() / m) * std::expm1(segment / m));
}

Seconds young_interval(const Interruptions& interruptions) {
  return Seconds{std::sqrt(2 * interruptions.checkpoint.count() * interruptions.mean_between.count())};
}

Seconds daly_interval(const Interruptions& interruptions) {
  const double m = interruptions.mean_between.count(), delta = interruptions.checkpoint.count();
  if (std::isinf(m) || delta >= 2 * m) return interruptions.mean_between;
  const double share = delta / (2 * m);
  return young_interval(interruptions) * (1 + std::sqrt(share) / 3 + share / 9) - interruptions.checkpoint;
}

Seconds best_interval(const Interruptions& interruptions) {
  const double m = interruptions.mean_between.count(), delta = interruptions.checkpoint.count();
  if (std::isinf(m)) return interruptions.mean_between;
  // In x = tau/M the left side of ln(1 - x) + x + delta/M = 0 falls from delta/M at 0 to minus infinity at 1.
  constexpr int kHalvings = 200;
  double low = 0, high = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double x = (low + high) / 2;
    (std::log1p(-x) + x + delta / m > 0 ? low : high) = x;
  }
  return Seconds{low * m};
}

}}  // namespace plumb::planner
