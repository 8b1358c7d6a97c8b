#include "planner/budget/simulated_goodput.h"

#include <array>
#include <cmath>

#include "simulator/noise/portable_math.h"
#include "simulator/noise/random_factor.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns a time that is exponentially distributed, with that mean.
double exponential_time(double mean, std::uint64_t key) {
  constexpr double kSteps = 9007199254740992.0;  // 2^53
  const double share = (static_cast<double>(key >> 11) + 0.5) / kSteps;
  return -mean * portable_log(share);
}

/// Sums over the points of a fit of time = c + a tau + b / tau by least squares.
class HyperbolaFit {
 public:
  void add(double tau, double time) {
    const std::array<double, 3> basis = {1, tau, 1 / tau};
    for (std::size_t i = 0; i < basis.size(); ++i) {
      for (std::size_t j = 0; j < basis.size(); ++j) normal_[i][j] += basis[i] * basis[j];
      right_[i] += basis[i] * time;
    }
  }

  /// Returns sqrt(b/a) by Cramer's rule.
  double least() const {
    const double a = determinant(1), b = determinant(2);
    return std::sqrt(b / a);
  }

 private:
  double determinant(std::size_t replaced) const {
    auto m = normal_;
    for (std::size_t i = 0; i < m.size(); ++i) m[i][replaced] = right_[i];
    return m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
           m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
  }

  std::array<std::array<double, 3>, 3> normal_{};
  std::array<double, 3> right_{};
};

}  // namespace

SimulatedGoodput simulate_goodput(const Interruptions& interruptions, Seconds interval, const GoodputRun& run) {
  const double segment = (interval + interruptions.checkpoint).count(), restart = interruptions.restart.count();
  double useful = 0, all = 0, useful_squares = 0, all_squares = 0, products = 0;
  for (int cycle = 0; cycle < run.interruptions; ++cycle) {
    const double time =
        exponential_time(interruptions.mean_between.count(), random_key({run.seed, static_cast<std::uint64_t>(cycle)}));
    const double work = time > restart ? std::floor((time - restart) / segment) * interval.count() : 0;
    useful += work;
    all += time;
    useful_squares += work * work;
    all_squares += time * time;
    products += work * time;
  }
  const double ratio = useful / all, count = run.interruptions;
  const double squares = useful_squares - 2 * ratio * products + ratio * ratio * all_squares;
  return {.goodput = ratio, .standard_error = std::sqrt(squares / (count - 1) / count) / (all / count)};
}

Seconds simulated_best_interval(const Interruptions& interruptions, const GoodputRun& run) {
  constexpr double kWidest = 2, kNarrowest = 1.4;  // factors around the best so far
  constexpr int kRounds = 6, kHalfPoints = 10;
  double best = 2 * young_interval(interruptions).count();
  for (int round = 0; round < kRounds; ++round) {
    const double width = round < kRounds / 2 ? kWidest : kNarrowest;
    HyperbolaFit fit;
    for (int point = -kHalfPoints; point <= kHalfPoints; ++point) {
      const double relative = std::pow(width, static_cast<double>(point) / kHalfPoints);
      const double goodput = simulate_goodput(interruptions, Seconds{best * relative}, run).goodput;
      fit.add(relative, 1 / goodput);
    }
    best *= fit.least();
  }
  return Seconds{best};
}

}}  // namespace plumb::planner
