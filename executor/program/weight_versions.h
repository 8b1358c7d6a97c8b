#pragma once
// The batch and the version of the weights that each micro-batch uses: the policies of WeightPolicy as numbers. They
// follow from the order of a schedule alone, so they are known before it runs.
//
//   weight_versions(pipedream, p = 2, m = 4).version == {{0, 0, 1, 2}, {0, 1, 2, 3}}

#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

struct WeightVersions {
  /// [stage][micro-batch] Version of the weights: the number of the stage's OPTIMIZER_STEPs that they have seen since
  /// the schedule's start.
  std::vector<std::vector<int>> version;
  /// [stage][micro-batch] Batch: the number of the stage's OPTIMIZER_STEPs before the one that takes its gradient.
  std::vector<std::vector<int>> batch;
};

/// Returns the versions under the schedule's policy. kCurrent and kStashed use the newest version at the micro-batch's
/// F, kVerticalSync the newest at its F on the first stage of its lane, and kTwoBuffered the version max(0, batch - 1).
/// The version is -1 for a micro-batch that the stage does not run. In a schedule without backward every batch is 0.
///
/// Throws ScheduleError if the weights change between a micro-batch's F and its backward although the policy is
/// kCurrent, or if a version does not exist yet at the F that needs it.
WeightVersions weight_versions(const Schedule& schedule);

}}  // namespace plumb::executor
