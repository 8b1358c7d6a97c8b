#pragma once
// Which optimizer step of a replay each micro-batch belongs to.

#include <cstdint>
#include <vector>

#include "executor/weight_versions.h"
#include "schedules/schedule.h"

namespace plumb {

struct Batches {
  std::vector<int> batch_of;        ///< [micro-batch]
  std::vector<std::int64_t> sizes;  ///< [batch] micro-batches of one replica
};

/// Throws ScheduleError if a micro-batch belongs to different steps on different stages.
Batches batches_of(const Schedule& schedule, const WeightVersions& versions);

}  // namespace plumb
