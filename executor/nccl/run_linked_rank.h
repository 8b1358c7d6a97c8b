#pragma once
// One rank of a run on a device of its own, beside others that are threads or processes: plans are compared, ids handed
// out, the steps trained, the results gathered.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executor/device/device_machine.h"
#include "executor/device/run_device.h"
#include "executor/nccl/linked_calls.h"
#include "executor/nccl/nccl_port.h"
#include "executor/nccl/rank_board.h"

namespace plumb { inline namespace executor {

struct LinkedRank {
  RankBoard* board = nullptr;
  NcclPort* port = nullptr;
  std::string device;  ///< that no other rank has (rank_board.h)
  std::function<std::unique_ptr<DeviceMachine>(LinkedCalls& links)> make_machine;
  DeviceRunOptions options;
};

/// Called by all ranks with the same spec; rank 0 gets the result, the others nothing. Throws SpecError, the same on
/// all ranks, if there are not as many ranks as the spec needs, they were given different plans, two are on one device,
/// or the stages would have to agree on something (clipping, fp16, a tied table); RunError on the rank that finds a
/// fault first, RunAborted on the others, when all communicators are aborted.
std::optional<RunResult> run_linked_rank(const RunSpec& spec, const LinkedRank& rank);

}}  // namespace plumb::executor
