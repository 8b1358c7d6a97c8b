#include "executor/batches.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/error.h"

namespace plumb {

Batches batches_of(const Schedule& schedule, const WeightVersions& versions) {
  Batches batches{std::vector<int>(static_cast<std::size_t>(schedule.microbatches), 0), {}};
  batches.sizes.assign(1, 0);
  for (std::size_t i = 0; i < batches.batch_of.size(); ++i) {
    int batch = -1;
    for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
      if (versions.version[stage][i] < 0) continue;
      if (batch >= 0 && batch != versions.batch[stage][i])
        throw ScheduleError(
            fmt::format("{}: micro-batch {} belongs to different optimizer steps on different stages; list "
                        "each stage's OPTIMIZER_STEPs behind the same micro-batches",
                        schedule.name, i));
      batch = versions.batch[stage][i];
    }
    batches.batch_of[i] = batch;
    batches.sizes.resize(std::max(batches.sizes.size(), static_cast<std::size_t>(batch) + 1), 0);
    ++batches.sizes[static_cast<std::size_t>(batch)];
  }
  return batches;
}

}  // namespace plumb
