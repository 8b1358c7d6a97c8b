#pragma once
// One rank of a run on a device of its own; the other ranks are threads or processes. The ranks compare plans, hand out
// ids, train the steps and gather the results.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executor/machines/device_machine.h"
#include "executor/training/device/run_device.h"
#include "executor/transport/nccl/linked_calls.h"
#include "executor/transport/nccl/nccl_port.h"
#include "executor/transport/nccl/rank_board.h"

namespace plumb { inline namespace executor {

struct LinkedRank {
  RankBoard* board = nullptr;
  NcclPort* port = nullptr;
  std::string device;  ///< differs from that of every other rank (rank_board.h)
  std::function<std::unique_ptr<DeviceMachine>(LinkedCalls& links)> make_machine;
  DeviceRunOptions options;
};

/// Runs the rank; all ranks call it with the same spec. Rank 0 gets the result, the others nothing. Throws SpecError,
/// on all ranks alike, if there are not as many ranks as the spec needs, the ranks were given different plans, two
/// ranks are on one device, the training would be resumed, or require_device_runnable() refuses the spec. Throws
/// RunError on the rank that finds a fault first, and RunAborted on the others, after all communicators are aborted.
std::optional<RunResult> run_linked_rank(const RunSpec& spec, const LinkedRank& rank);

}}  // namespace plumb::executor
