#pragma once
// A cluster fitted to a user's own measurements.
//
//   ClusterFit fit = fit_cluster(base, {.collectives = {log}, .gemms = {{"gemm.csv", samples}}});
//
// What is measured goes in as it is: tables of the collectives by group shape (out of place, which is how training
// calls them), samples of the matrix products. The constants between and beyond them are fitted:
//   nccl.low_latency_launch_us,   least squares on relative errors over all collectives
//   (price/collective/nccl_launch_fit.h); needs simple_launch_us,             the base's nccl block bandwidth_scale
//   device.gemm_efficiency        the median of what products reach of the roofline's FLOPs, over those that are bound
//                                 by them and fill half of the device; or, where no product was measured, the
//                                 efficiency at which the plan's predicted step lasts as long as the log's median step
//   device.reserved_gib           the largest reserved memory of a training log less the plan's predicted peak
// An efficiency above 1 and a bandwidth scale above 1.25 are errors: the mapping is wrong.

#include <optional>
#include <string>
#include <vector>

#include "planner/calibrate/nccl_tests_log.h"
#include "planner/calibrate/training_log.h"
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
  std::optional<Plan> plan;  ///< what the training logs ran; needed for them
  std::string date;          ///< ISO 8601, for the sources
};

/// A constant and how well it is determined.
struct FittedConstant {
  std::string path;                      ///< in the cluster file
  double value = 0;                      ///< in the file's unit
  std::optional<double> standard_error;  ///< nothing: the observations leave no spare degree
  int observations = 0;
  double residual_pct = 0;  ///< mean |error| of what it was fitted on
};

struct ClusterFit {
  ClusterSpec cluster;
  std::vector<FittedConstant> constants;
  std::vector<std::string> notes;  ///< what could not be determined, and why
};

/// Throws SpecError naming the file if a group does not fit the base's nodes, if training logs have no plan or their
/// plan no prediction, or if a constant comes out beyond what is possible.
ClusterFit fit_cluster(ClusterSpec base, const ClusterEvidence& evidence);

}}  // namespace plumb::planner
