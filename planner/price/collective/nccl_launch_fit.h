#pragma once
// Fits the three constants of a cluster to its measured collectives.
//
//   LaunchFit fit = fit_launches(observations);   // fit.calibration, and the standard error of each constant
//
// NCCL's choice does not depend on the constants, so that a time is linear in them:
//   t = latency + launch(protocol) + x transfer + copy,    bandwidth_scale = 1 / x
// The fit minimises the squares of relative errors (weights 1 / t^2). A launch is not below 0: a launch that comes out
// negative is set to 0, and the others are fitted again. Constants on which no observation depends stay at 0, 0 and 1.
// All do where the times do not grow with the size by two standard errors: such times tell nothing of a machine.

#include <array>
#include <optional>
#include <vector>

#include "planner/price/collective/nccl_tuning.h"
#include "planner/spec/nccl_spec.h"

namespace plumb { inline namespace planner {

struct CollectiveObservation {
  NcclEstimate estimate;  ///< estimate of NCCL's model without constants
  Seconds measured{0};    ///< above 0
};

struct LaunchFit {
  static constexpr int kLowLatency = 0, kSimple = 1, kScale = 2;
  NcclCalibration calibration;
  /// [constant] one standard error (seconds, seconds, share of 1), from the residual; nothing where the constant was
  /// not fitted or no observation is left over to estimate it.
  std::array<std::optional<double>, 3> standard_error;
  std::array<int, 3> observations{};  ///< [constant] number that depend on it
  std::array<bool, 3> fitted{};  ///< [constant] true: the observations tell it from the others, and it is not below 0
  double residual_ratio = 0;     ///< mean |predicted / measured - 1| on the observations fitted
};

LaunchFit fit_launches(const std::vector<CollectiveObservation>& observations);

/// Returns |predicted / measured - 1|.
double relative_error(const CollectiveObservation& observation, const NcclCalibration& calibration);

}}  // namespace plumb::planner
