#pragma once
// The optimizer's update of a block in one step: part by part where its state is on the device, otherwise through the
// two halves of a window.

#include <cstddef>

#include "executor/parameters/device/block_layout.h"
#include "executor/parameters/device/block_memory.h"
#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

/// Memory that an update reads besides the block's own.
struct UpdateInputs {
  const StepNumbers* numbers = nullptr;
  const float* constants = nullptr;  ///< update_constants()
  std::byte* workspace = nullptr;    ///< [OptimizerPlaces::workspace_bytes()]
};

/// Enqueues the update. step: number of the optimizer's step in the replay.
void enqueue_block_update(CallRecorder& recorder, const BlockLayout& layout, const BlockMemory& memory, int step,
                          const UpdateInputs& inputs);

}}  // namespace plumb::executor
