#pragma once
// Parameters of one kind that a stage has on a device, as its passes and its optimizer step use them: weights and
// gradients of each layer, their exchanges between copies (exchange/device_shares.h), and the measure of the gradients.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/machines/device_machine.h"
#include "executor/parameters/device/block_layout.h"
#include "executor/parameters/device/block_memory.h"
#include "executor/parameters/device/block_update.h"
#include "executor/parameters/device/moved_layer.h"
#include "executor/parameters/model_values.h"
#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

/// A layer's parameters as its passes read them.
struct StoredWeights {
  const std::byte* stored = nullptr;
  /// Vectors of the layer in fp32: all of its parameters, or behind `packed` its vectors alone, from number
  /// `first_packed` on (DeviceLayerCall).
  const float* vectors = nullptr;
  const PackedVectors* packed = nullptr;
  std::int64_t first_packed = 0;
};

class ParameterBlock {
 public:
  /// `layers` are whole: not divided over the tensor group.
  ParameterBlock(const std::vector<Layer>& layers, const ParameterBlockOptions& options);

  const BlockLayout& layout() const { return layout_; }

  /// Allocates, and uploads the weights and the state with which the run begins.
  void settle(DeviceMachine& machine, bool capture_gradients);

  /// Returns a layer's weights. version: [version_bytes()] replaced or gathered weights; null: the newest. moved: the
  /// room of a pass that gathers layer by layer.
  StoredWeights weights_of(std::size_t layer, const std::byte* version, std::byte* moved) const;
  /// Address to which a layer's gradients are added. whole: gradients of all elements where they are sharded.
  float* gradients_of(std::size_t layer, float* whole, std::byte* moved) const;
  /// Address of the gradients that are held here: of all elements, or of the own ones.
  float* gradients() const { return memory_.gradients; }

  /// Fills the gradients of all elements with zeros, where these are sharded.
  void open_gradients(DeviceKernels& kernels, float* whole) const;
  /// REDUCE_GRAD of a bucket.
  void reduce(CallRecorder& recorder, float* whole, std::size_t bucket) const;
  /// UNSHARD. gathered: [version_bytes()] with ZeRO 3.
  void gather(CallRecorder& recorder, std::byte* gathered) const;

  // Layer by layer (ZeRO 2 and 3).
  const LayerRoom& room() const { return room_; }
  /// Sets where the block's part of the room lies, in bytes from the room's first.
  void place_room(std::int64_t first_weights, std::int64_t first_gradients);
  MovedLayer moved_layer(std::byte* moved, std::size_t layer) const { return {layout_, memory_, room_, moved, layer}; }

  /// Finds the gradients that this rank measures, so that over all ranks each element counts once: its share of the
  /// block as ZeRO divides it, without elements of which a tensor rank before it has a copy, and without `others`.
  void find_measured(ElementRange others);
  std::int64_t partial_count() const { return std::ssize(measured_) * kGradientPieces; }
  /// partials: [partial_count()] sums of squares. A gradient beyond `limit` counts as an overflow.
  void measure_gradients(DeviceKernels& kernels, float* partials, float limit) const;

  /// Copies the weights before they are replaced. replaced: [version_bytes()]
  void keep_version(DeviceKernels& kernels, std::byte* replaced) const;
  void update(CallRecorder& recorder, int step, const UpdateInputs& inputs) const;

  // Between replays: writes values into the model's or a checkpoint, where this rank speaks for them.
  void copy_weights(DeviceMachine& machine, ModelValues& model) const;
  void copy_gradients(DeviceMachine& machine, ModelValues& model, int step, float factor) const;
  void save(DeviceMachine& machine, TrainingState& state) const;

 private:
  BlockLayout layout_;
  LayerRoom room_;
  std::vector<ElementRange> measured_;
  BlockMemory memory_;
};

}}  // namespace plumb::executor
