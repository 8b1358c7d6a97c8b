#include "executor/parameters/device/block_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "executor/machines/device_values.h"
#include "executor/parameters/device/block_values.h"
#include "executor/parameters/optimizer_state.h"
#include "kernels/cpu/half.h"

namespace plumb { inline namespace executor {
namespace {

/// Writes into the block that may be in the host's memory: between replays nothing else touches it.
void write_state(DeviceMachine& machine, const BlockLayout& layout, const BlockMemory& memory, std::int64_t first,
                 std::span<const std::byte> bytes) {
  if (layout.optimizer().is_on_host())
    std::ranges::copy(bytes, memory.state + first);
  else
    machine.upload(memory.state + first, bytes);
}

/// Returns the vectors as a gather leaves them where the weights are sharded, otherwise as the master weights have
/// them.
std::vector<float> first_vectors(const BlockLayout& layout, std::span<const float> weights) {
  std::vector<float> vectors = layout.vectors().packed(weights);
  if (layout.shares().zero() == 0) return vectors;
  const HalfFormat half = *layout.options().half;
  std::vector<std::uint16_t> stored(vectors.size());
  narrow(stored.data(), vectors.data(), std::ssize(vectors), half);
  widen(vectors.data(), stored.data(), std::ssize(vectors), half);
  return vectors;
}

/// Allocates and uploads the weights alone.
BlockMemory settled_weights(DeviceMachine& machine, const BlockLayout& layout, std::span<const float> weights,
                            std::span<const float> own_weights) {
  BlockMemory memory;
  const bool is_whole = layout.shares().zero() < 3;
  const std::span<const float> held = is_whole ? weights : own_weights;
  if (!layout.is_half()) {
    memory.master = allocate_elements<float>(machine, std::ssize(held));
    upload_all(machine, memory.master, held);
    memory.stored_weights = reinterpret_cast<std::byte*>(memory.master);
    return memory;
  }
  std::vector<std::uint16_t> narrow_weights(held.size());
  narrow(narrow_weights.data(), held.data(), std::ssize(held), *layout.options().half);
  memory.stored_weights =
      machine.allocate(is_whole ? layout.stored_bytes() : std::ssize(held) * layout.element_bytes() + 2);
  upload_all<std::uint16_t>(machine, memory.stored_weights, narrow_weights);
  if (layout.optimizer().has_master_on_host()) return memory;
  memory.master = allocate_elements<float>(machine, std::ssize(own_weights));
  upload_all(machine, memory.master, own_weights);
  return memory;
}

}  // namespace

BlockMemory settled_block(DeviceMachine& machine, const BlockLayout& layout, bool capture_gradients) {
  const std::vector<float> weights = first_weights(layout);
  const ElementRange own = layout.own();
  const auto own_weights =
      std::span(weights).subspan(static_cast<std::size_t>(own.first), static_cast<std::size_t>(own.count));
  BlockMemory memory = settled_weights(machine, layout, weights, own_weights);
  if (layout.has_vector_block()) {
    memory.vector_block = allocate_elements<float>(machine, layout.vectors().elements());
    upload_all<float>(machine, memory.vector_block, first_vectors(layout, weights));
  }
  memory.gradients = allocate_elements<float>(machine, layout.held_gradients());
  const std::int64_t state_bytes = layout.optimizer().block_bytes();
  if (layout.optimizer().is_on_host()) {
    memory.state = machine.allocate_on_host(state_bytes);
    std::fill_n(memory.state, state_bytes, std::byte{0});
  } else {
    memory.state = machine.allocate(state_bytes);
  }
  if (layout.optimizer().has_master_on_host())
    write_state(machine, layout, memory, layout.optimizer().master().first, std::as_bytes(own_weights));
  if (layout.options().resume != nullptr) {
    std::vector<std::byte> state = read_state(machine, layout, memory);
    restore_state(layout, state);
    write_state(machine, layout, memory, 0, state);
  }
  if (layout.shares().reduces_layers() && layout.vectors().elements() > 0)
    memory.waiting_vectors = allocate_elements<float>(machine, layout.vectors().elements());
  if (capture_gradients) memory.captured = allocate_elements<float>(machine, layout.options().steps * own.count);
  return memory;
}

float* own_master(const BlockLayout& layout, const BlockMemory& memory) {
  if (layout.optimizer().has_master_on_host()) return nullptr;
  return layout.is_half() || layout.shares().zero() == 3 ? memory.master : memory.master + layout.own().first;
}

float* own_gradients(const BlockLayout& layout, const BlockMemory& memory) {
  return layout.shares().zero() < 2 ? memory.gradients + layout.own().first : memory.gradients;
}

std::vector<float> read_master(DeviceMachine& machine, const BlockLayout& layout, const BlockMemory& memory) {
  std::vector<float> values(static_cast<std::size_t>(layout.own().count));
  if (const float* const own = own_master(layout, memory); own != nullptr)
    machine.download(std::as_writable_bytes(std::span(values)), own);
  else
    std::memcpy(values.data(), memory.state + layout.optimizer().master().first, values.size() * sizeof(float));
  return values;
}

std::vector<float> read_captured(DeviceMachine& machine, const BlockLayout& layout, const BlockMemory& memory,
                                 int step) {
  std::vector<float> values(static_cast<std::size_t>(layout.own().count));
  machine.download(std::as_writable_bytes(std::span(values)), memory.captured + step * layout.own().count);
  return values;
}

std::vector<std::byte> read_state(DeviceMachine& machine, const BlockLayout& layout, const BlockMemory& memory) {
  std::vector<std::byte> block(static_cast<std::size_t>(layout.optimizer().block_bytes()));
  if (layout.optimizer().is_on_host())
    std::copy_n(memory.state, block.size(), block.begin());
  else
    machine.download(block, memory.state);
  return block;
}

}}  // namespace plumb::executor
