#pragma once
// Which temporary tensors a schedule's calls need on each rank, and from which call to which (schedules/cost_table.h
// says how many bytes; docs/design.md, rule 5 how long).

#include <cstdint>
#include <span>
#include <vector>

#include "executor/device_plan/device_calls.h"
#include "executor/device_plan/device_program.h"

namespace plumb { inline namespace executor {

/// Bytes of each micro-batch of a stage, where they are not alike: [stage][micro-batch]. A stage, or all of them, may
/// be empty: the cost table says it for all micro-batches.
using MicrobatchMemory = std::vector<std::vector<StageMemory>>;

/// Without offsets, and none of no bytes. Weights, gradients and optimizer state stay for the whole run: they are none
/// of these.
std::vector<DeviceBuffer> device_buffers(const Schedule& lowered, const CostTable& costs, const DeviceCalls& calls,
                                         std::span<const DeviceStageBytes> stage_bytes = {},
                                         const MicrobatchMemory& of_microbatches = {});

}}  // namespace plumb::executor
