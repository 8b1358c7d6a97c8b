#pragma once
// One layer of a block in ZeRO 2 and 3 layer by layer (executor/parameters/layer_moves.h): its gathered weights and
// its unreduced gradients, in a room of the arena that all layers of a pass use in turn.

#include <cstddef>
#include <cstdint>

#include "executor/parameters/device/block_layout.h"
#include "executor/parameters/device/block_memory.h"
#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

/// Bytes that the largest layer of a block takes in the room, and where the block's part of the room lies. The room
/// holds two layers' weights and one layer's gradients.
struct LayerRoom {
  std::int64_t stored = 0;                              ///< stored weights of one layer
  std::int64_t vectors = 0;                             ///< vectors of one layer in fp32, beside 16-bit weights
  std::int64_t gradients = 0;                           ///< gradients of one layer
  std::int64_t first_weights = 0, first_gradients = 0;  ///< bytes from the room's first

  std::int64_t weight_bytes() const { return 2 * (stored + vectors); }
};

/// Returns the sizes. A layer lies in its place as in the stage's block: tensors that are aligned there are aligned
/// here.
LayerRoom layer_room(const BlockLayout& layout);

/// A layer in the room. It enqueues nothing where the block does not gather, or reduce, layer by layer.
class MovedLayer {
 public:
  /// Layout, memory and room outlive it. moved: the room's first byte.
  MovedLayer(const BlockLayout& layout, const BlockMemory& memory, const LayerRoom& room, std::byte* moved,
             std::size_t layer);

  /// Address of the gathered weights as they are stored.
  const std::byte* stored() const;
  /// Address of the layer's vectors in fp32 (16 bits), or of all of its parameters (fp32).
  const float* vectors() const;
  float* gradients() const;

  /// Copies the own share into the room and gathers the others'.
  void gather(CallRecorder& recorder) const;
  /// Widens the gathered vectors to fp32.
  void widen(DeviceKernels& kernels) const;
  /// Fills the gradients with zeros.
  void open(DeviceKernels& kernels) const;
  /// Keeps the gradients of vectors that I has made until W, or takes them back.
  void leave_vectors(DeviceKernels& kernels) const;
  void take_vectors(DeviceKernels& kernels) const;
  /// Reduces the gradients over the copies.
  void reduce(CallRecorder& recorder) const;
  /// Adds the own share of the reduced gradients to the block's.
  void add_share(DeviceKernels& kernels) const;

 private:
  std::byte* place() const;
  std::byte* words() const;

  const BlockLayout& layout_;
  const BlockMemory& memory_;
  const LayerRoom& room_;
  std::byte* const moved_;
  const std::size_t layer_;
  const ElementRange range_;       // of the block
  const ElementRange word_range_;  // the words in which the layer's stored weights lie
};

}}  // namespace plumb::executor
