#include "schedules/lower.h"

#include <utility>

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/passes/passes.h"

namespace plumb {

Schedule lower(Schedule schedule, const LoweringOptions& options) {
  if (has_messages(schedule)) {
    throw ScheduleError(fmt::format("{} has messages already: lower its compute order", schedule.name));
  }
  Schedule result = add_recompute(std::move(schedule), options.checkpoint);
  if (options.offload) result = add_offload(std::move(result), *options.offload);
  result = add_copy_reductions(add_optimizer_steps(std::move(result)));
  if (options.data.enabled)
    result = add_data_parallel(std::move(result), options.data.zero, options.data.sharding, options.data.buckets);
  return add_messages(result, options.receives);
}

}  // namespace plumb
