#pragma once
// A cluster that is fitted to a user's own measurements.
//
//   ClusterFit fit = fit_cluster(base, {.collectives = {log}, .gemms = {{"gemm.csv", samples}}});
//
// Measurements enter as they are: tables of the collectives by group shape (out of place, which is how training calls
// them), and samples of the matrix products. The constants between and beyond them are fitted:
//   nccl.low_latency_launch_us,   least squares on relative errors over all collectives
//   simple_launch_us,             (price/collective/nccl_launch_fit.h); needs the base's nccl block
//   bandwidth_scale
//   device.gemm_efficiency        the median share of the roofline's FLOPs that products reach, over those that FLOPs
//                                 bound and that fill half of the device; or, where no product was measured, the
//                                 efficiency at which the plan's predicted step lasts as long as the log's median step
//   device.reserved_gib           the largest reserved memory of a training log less the plan's predicted peak
// An efficiency above 1 and a bandwidth scale above 1.25 are errors: the mapping is wrong.

#include <optional>
#include <string>
#include <vector>

#include "planner/logs/nccl_tests_log.h"
#include "planner/logs/training_log.h"
#include "planner/search/plan.h"
#include "planner/spec/cluster_spec.h"
#include "traces/measurement.h"

namespace plumb { inline namespace planner {

struct GemmTable {
  std::string file;
  std::vector<KernelSample> samples;
};

struct ClusterEvidence {
  std::vector<NcclTestsLog> collectives;
  std::vector<GemmTable> gemms;
  std::vector<TrainingLog> trainings;
  std::optional<Plan> plan;  ///< plan that the training logs ran; they need it
  std::string date;          ///< ISO 8601, for the sources
};

/// A fitted constant and its certainty.
struct FittedConstant {
  std::string path;                      ///< dotted path in the cluster file
  double value = 0;                      ///< value in the file's unit
  std::optional<double> standard_error;  ///< nothing: the observations leave no spare degree of freedom
  int observations = 0;
  double residual_pct = 0;  ///< mean |error| on the observations that it was fitted to
};

struct ClusterFit {
  ClusterSpec cluster;
  std::vector<FittedConstant> constants;
  std::vector<std::string> notes;  ///< constants that could not be determined, and the reasons
};

/// Returns the fitted cluster. Throws SpecError naming the file if a group does not fit the base's nodes, if training
/// logs have no plan or their plan no prediction, or if a constant comes out beyond the possible values.
ClusterFit fit_cluster(ClusterSpec base, const ClusterEvidence& evidence);

}}  // namespace plumb::planner
