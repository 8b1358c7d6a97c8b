#pragma once
// The temporary tensors that a schedule's calls need on each rank, and the calls between which they are needed
// (schedules/cost_table.h has their bytes; docs/design.md, rule 5, has their lifetimes).

#include <cstdint>
#include <span>
#include <vector>

#include "executor/program/device/device_calls.h"
#include "executor/program/device/device_program.h"

namespace plumb { inline namespace executor {

/// [stage][micro-batch] bytes of each micro-batch of a stage, where micro-batches differ. The entry of a stage, or the
/// whole vector, may be empty; then the cost table's bytes hold for all micro-batches.
using MicrobatchMemory = std::vector<std::vector<StageMemory>>;

/// Returns the buffers without offsets; none has 0 bytes. Weights, gradients and optimizer state stay for the whole run
/// and are not among them.
std::vector<DeviceBuffer> device_buffers(const Schedule& lowered, const CostTable& costs, const DeviceCalls& calls,
                                         std::span<const DeviceStageBytes> stage_bytes = {},
                                         const MicrobatchMemory& of_microbatches = {});

}}  // namespace plumb::executor
