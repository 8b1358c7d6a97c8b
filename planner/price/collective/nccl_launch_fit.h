#pragma once
// The three constants of a cluster from its measured collectives.
//
//   LaunchFit fit = fit_launches(observations);   // fit.calibration, and how well each constant is determined
//
// NCCL's choice does not depend on the constants, so a time is linear in them,
//   t = latency + launch(protocol) + x transfer + copy,    bandwidth_scale = 1 / x,
// and they are those of least squares on relative errors (weights 1 / t^2). A launch is not below 0: one that comes out
// so is 0, and the others are fitted again. Constants that no observation asks for stay at 0, 0 and 1.

#include <array>
#include <optional>
#include <vector>

#include "planner/price/collective/nccl_tuning.h"
#include "planner/spec/nccl_spec.h"

namespace plumb { inline namespace planner {

struct CollectiveObservation {
  NcclEstimate estimate;  ///< of NCCL's model, without constants
  Seconds measured{0};    ///< above 0
};

struct LaunchFit {
  static constexpr int kLowLatency = 0, kSimple = 1, kScale = 2;
  NcclCalibration calibration;
  /// [constant] one standard error (seconds, seconds, share of 1), from the residual; nothing where the constant was
  /// not fitted or no observation is left over to tell.
  std::array<std::optional<double>, 3> standard_error;
  std::array<int, 3> observations{};  ///< [constant] that ask for it
  std::array<bool, 3> fitted{};       ///< [constant] the observations tell it from the others, and it is not below 0
  double residual_ratio = 0;          ///< mean |predicted / measured - 1| on the observations fitted
};

LaunchFit fit_launches(const std::vector<CollectiveObservation>& observations);

/// |predicted / measured - 1|.
double relative_error(const CollectiveObservation& observation, const NcclCalibration& calibration);

}}  // namespace plumb::planner
