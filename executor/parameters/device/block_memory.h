#pragma once
// A block's weights, gradients and optimizer state in the memory of a device, and what is read of them between replays.

#include <cstddef>
#include <vector>

#include "executor/machines/device_machine.h"
#include "executor/parameters/device/block_layout.h"

namespace plumb { inline namespace executor {

struct BlockMemory {
  std::byte* stored_weights = nullptr;  ///< [elements], or where they are sharded [own]; `master` itself in fp32
  float* master = nullptr;              ///< as many; in 16 bits [own], or null where the state on the host has them
  float* gradients = nullptr;           ///< [elements], or where they are sharded [own]
  std::byte* state = nullptr;           ///< block of OptimizerPlaces, which may be in the host's memory
  float* vector_block = nullptr;        ///< [vectors] where BlockLayout::has_vector_block()
  float* waiting_vectors = nullptr;     ///< [vectors] layer by layer: gradients of I that wait for W
  float* captured = nullptr;            ///< [steps, own] gradients as steps consumed them, for tests; otherwise null
};

/// Allocates the block's memory and uploads the weights and the state with which the run begins.
BlockMemory settled_block(DeviceMachine& machine, const BlockLayout& layout, bool capture_gradients);

/// Address of the master weights of the own elements; null where they are on the host.
float* own_master(const BlockLayout& layout, const BlockMemory& memory);
/// Address of the gradients of the own elements.
float* own_gradients(const BlockLayout& layout, const BlockMemory& memory);

/// Downloads the master weights of the own elements.
std::vector<float> read_master(DeviceMachine& machine, const BlockLayout& layout, const BlockMemory& memory);
/// Downloads the gradients of the own elements as the step of that number in the replay consumed them.
std::vector<float> read_captured(DeviceMachine& machine, const BlockLayout& layout, const BlockMemory& memory,
                                 int step);
/// Downloads the optimizer's block.
std::vector<std::byte> read_state(DeviceMachine& machine, const BlockLayout& layout, const BlockMemory& memory);

}}  // namespace plumb::executor
