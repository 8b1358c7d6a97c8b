#pragma once
// Which batch and which version of the weights each micro-batch uses: the policies of WeightPolicy as numbers. They
// follow from the order of a schedule alone, so they are known before it runs.
//
//   weight_versions(pipedream, p = 2, m = 4).version == {{0, 0, 1, 2}, {0, 1, 2, 3}}

#include <vector>

#include "schedules/schedule.h"

namespace plumb { inline namespace executor {

struct WeightVersions {
  /// [stage][micro-batch]: how many OPTIMIZER_STEPs of the stage its weights have seen, from the schedule's start on.
  std::vector<std::vector<int>> version;
  /// [stage][micro-batch]: how many OPTIMIZER_STEPs of the stage come before the one that takes its gradient.
  std::vector<std::vector<int>> batch;
};

/// kCurrent and kStashed: the newest at the micro-batch's F; kVerticalSync: the newest at its F on the first stage of
/// its lane; kTwoBuffered: max(0, batch - 1). -1 for a micro-batch that the stage does not run. In a schedule without
/// backward every batch is 0.
/// Throws ScheduleError if the weights change between a micro-batch's F and its backward although the policy is
/// kCurrent, or if a version is not made yet at the F that needs it.
WeightVersions weight_versions(const Schedule& schedule);

}}  // namespace plumb::executor
