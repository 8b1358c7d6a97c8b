#include "schedules/lower.h"

#include <fmt/format.h>

#include "schedules/error.h"
#include "schedules/passes/passes.h"

namespace plumb {

Schedule lower(const Schedule& schedule, const LoweringOptions& options) {
  if (has_messages(schedule)) {
    throw ScheduleError(fmt::format("{} has messages already: lower its compute order", schedule.name));
  }
  Schedule result = add_recompute(schedule, options.checkpoint);
  if (options.offload) result = add_offload(result, *options.offload);
  result = add_copy_reductions(add_optimizer_steps(result));
  if (options.data.enabled) result = add_data_parallel(result, options.data.zero, options.data.sharding);
  return add_messages(result);
}

}  // namespace plumb
