#include "executor/training/device/run_device.h"

#include <algorithm>

#include "executor/training/device/device_run.h"
#include "schedules/error.h"

namespace plumb { inline namespace executor {

RunResult run_device(const RunSpec& spec, DeviceMachine& machine, const DeviceRunOptions& options) {
  require_device_runnable(spec);
  return DeviceRun(spec, machine, options, std::nullopt).run();
}

DeviceRankResult run_device_rank(const RunSpec& spec, int world_rank, DeviceMachine& machine,
                                 const DeviceRunOptions& options) {
  require_device_runnable(spec);
  for (const std::vector<Action>& actions : spec.schedule.ranks)
    if (std::ranges::count(actions, Op::kEvict, &Action::op) > 0)
      throw SpecError(
          "ranks on devices of their own have no place in each other's memory for activations that are evicted: take "
          "a schedule without EVICT (1f1b, say), run all ranks on one device, or use --backend cpu");
  if (options.checkpoint_every > 0)
    throw SpecError(
        "ranks on devices of their own write no checkpoints yet: leave --checkpoint-dir away, or use "
        "--backend cpu");
  return DeviceRun(spec, machine, options, world_rank).run_rank(world_rank);
}

}}  // namespace plumb::executor
