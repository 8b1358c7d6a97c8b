#include "planner/price/collective/nccl_launch_fit.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace plumb { inline namespace planner {
namespace {

constexpr int kLaunchConstants = 3;
using Row = std::array<double, kLaunchConstants>;

/// Returns the contribution of each constant to the time, over the time; the last is that of 1 / bandwidth_scale.
Row row_of(const CollectiveObservation& observation) {
  const bool simple = observation.estimate.protocol == NcclProtocol::kSimple;
  const double measured = observation.measured.count();
  return {simple ? 0 : 1 / measured, simple ? 1 / measured : 0, observation.estimate.transfer.count() / measured};
}

double inner(const Row& a, const Row& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// Returns the inverse of the normal matrix over the chosen constants, zero elsewhere (Gauss-Jordan with pivots).
std::array<Row, kLaunchConstants> inverse(const std::array<Row, kLaunchConstants>& matrix,
                                          const std::vector<int>& chosen) {
  const std::size_t size = chosen.size();
  std::vector<std::vector<double>> work(size, std::vector<double>(2 * size, 0.0));
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) work[i][j] = matrix[chosen[i]][chosen[j]];
    work[i][size + i] = 1;
  }
  for (std::size_t i = 0; i < size; ++i) {
    const auto pivot = std::max_element(work.begin() + static_cast<std::ptrdiff_t>(i), work.end(),
                                        [&](const auto& a, const auto& b) { return std::abs(a[i]) < std::abs(b[i]); });
    std::swap(work[i], *pivot);
    const double scale = work[i][i];
    for (double& value : work[i]) value /= scale;
    for (std::size_t k = 0; k < size; ++k) {
      if (k == i) continue;
      const double factor = work[k][i];
      for (std::size_t j = 0; j < 2 * size; ++j) work[k][j] -= factor * work[i][j];
    }
  }
  std::array<Row, kLaunchConstants> result{};
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = 0; j < size; ++j) result[chosen[i]][chosen[j]] = work[i][size + j];
  }
  return result;
}

/// Returns the constants that the rows tell apart: observations of a single message size cannot tell a launch from the
/// scale.
std::vector<int> determined(const std::vector<Row>& rows, std::vector<int> chosen) {
  constexpr double kDistinct = 1e-6;
  for (const int launch : {0, 1}) {
    Row sums{};
    for (const Row& row : rows) {
      if (row[launch] == 0) continue;
      for (int i = 0; i < kLaunchConstants; ++i) sums[i] += row[launch] * row[i];
    }
    double own = 0;
    for (const Row& row : rows) own += row[launch] == 0 ? 0 : row[2] * row[2];
    const bool proportional = sums[2] * sums[2] > (1 - kDistinct) * sums[launch] * own;
    if (sums[launch] == 0 || proportional) std::erase(chosen, launch);
  }
  return chosen;
}

/// Returns the fit of times that do not grow with the size by more than their noise: no constant is fitted.
LaunchFit untold(const LaunchFit& fit) {
  return {.observations = fit.observations};
}

}  // namespace

double relative_error(const CollectiveObservation& observation, const NcclCalibration& calibration) {
  return std::abs(calibrated(calibration, observation.estimate) / observation.measured - 1);
}

LaunchFit fit_launches(const std::vector<CollectiveObservation>& observations) {
  LaunchFit fit;
  if (observations.empty()) return fit;
  std::vector<Row> rows;
  std::array<Row, kLaunchConstants> normal{};
  for (const CollectiveObservation& observation : observations) {
    assert(observation.measured.count() > 0);
    const Row row = row_of(observation);
    for (int i = 0; i < kLaunchConstants; ++i) {
      if (row[i] > 0) ++fit.observations[i];
      for (int j = 0; j < kLaunchConstants; ++j) normal[i][j] += row[i] * row[j];
    }
    rows.push_back(row);
  }
  Row constants{0, 0, 1};
  std::array<Row, kLaunchConstants> covariance{};
  std::vector<int> chosen = determined(rows, {0, 1, 2});
  for (bool again = true; again;) {
    again = false;
    covariance = inverse(normal, chosen);
    Row projected{};
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const double rest = 1 - observations[k].estimate.latency / observations[k].measured;
      for (int i = 0; i < kLaunchConstants; ++i) projected[i] += rows[k][i] * rest;
    }
    for (const int i : chosen) constants[i] = inner(covariance[i], projected);
    for (const int launch : {0, 1}) {
      if (constants[launch] >= 0) continue;
      constants[launch] = 0;
      std::erase(chosen, launch);
      again = true;
    }
  }
  if (constants[2] <= 0) return untold(fit);
  fit.calibration = {.low_latency_launch = Seconds{constants[0]},
                     .simple_launch = Seconds{constants[1]},
                     .bandwidth_scale = 1 / constants[2]};
  for (const int i : chosen) fit.fitted[i] = true;
  double squares = 0;
  for (const CollectiveObservation& observation : observations) {
    const double error = relative_error(observation, fit.calibration);
    squares += error * error;
    fit.residual_ratio += error / static_cast<double>(observations.size());
  }
  const auto spare = static_cast<double>(observations.size()) - static_cast<double>(chosen.size());
  if (spare < 1) return fit;
  for (const int i : chosen) fit.standard_error[i] = std::sqrt(squares / spare * covariance[i][i]);
  constexpr double kTold = 2;  // standard errors
  if (constants[2] < kTold * *fit.standard_error[2]) return untold(fit);
  // The error of the scale follows from d(1/x) = dx / x^2.
  *fit.standard_error[2] /= constants[2] * constants[2];
  return fit;
}

}}  // namespace plumb::planner
