#include "schedules/passes/lower.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "schedules/dependencies/weight_messages.h"
#include "schedules/error.h"
#include "schedules/passes/passes.h"

namespace plumb { inline namespace schedules {

Schedule lower(Schedule schedule, const LoweringOptions& options) {
  if (has_messages(schedule)) {
    throw ScheduleError(fmt::format("{} has messages already: lower its compute order", schedule.name));
  }
  if (weights_travel(schedule) && (options.data.enabled || options.data.zero > 0)) {
    throw ScheduleError(fmt::format(
        "{} sends its weights from rank to rank, which goes with no replicas and no sharding of them: leave "
        "these away, or lower another schedule",
        schedule.name));
  }
  Schedule result = add_recompute(std::move(schedule), options.checkpoint);
  if (options.offload) result = add_offload(std::move(result), *options.offload);
  if (options.offload_stages) result = add_lifespan_offload(std::move(result), *options.offload_stages);
  result = add_copy_reductions(add_optimizer_steps(std::move(result)));
  const std::vector<bool> copied = stages_with_copies(result);
  const bool copies_share = options.data.zero > 0 && std::ranges::find(copied, true) != copied.end();
  if (options.data.enabled || copies_share)
    result = add_data_parallel(std::move(result), options.data.zero, options.data.sharding, options.data.buckets);
  return add_messages(result, options.receives);
}

}}  // namespace plumb::schedules
