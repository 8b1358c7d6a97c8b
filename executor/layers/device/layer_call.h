#pragma once
// A micro-batch at a layer: where its tensors, weights and data lie, and the groups with which the layer exchanges.

#include <cstddef>
#include <cstdint>

#include "executor/kernels/device_kernels.h"
#include "executor/layers/device/device_context_group.h"
#include "executor/layers/device/device_expert_group.h"
#include "executor/layers/device/device_tensor_group.h"
#include "executor/layers/device/packed_vectors.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

/// The bytes that a layer needs.
struct DeviceLayerBytes : DeviceBytes {
  std::int64_t sequences = 0;           ///< kept by slices for whole sequences, from the first F to the last I
  std::int64_t sequence_gradients = 0;  ///< kept by slices from the first I on, zeros at first
};

struct DeviceLayerCall {
  DeviceKernels& kernels;
  std::byte* early = nullptr;
  std::byte* late = nullptr;
  std::byte* cheap = nullptr;
  std::byte* workspace = nullptr;
  std::byte* passing = nullptr;
  std::byte* sequences = nullptr;       ///< memory of a micro-batch that runs in slices, which all slices share
  float* sequence_gradients = nullptr;  ///< shared by its slices, too
  const std::byte* weights = nullptr;   ///< the layer's parameters, stored, without those of routed experts
  /// The layer's parameters in fp32; with `packed` only the vectors, those of the whole stage.
  const float* vectors = nullptr;
  const PackedVectors* packed = nullptr;
  std::int64_t first_element = 0;  ///< the layer's first element in the stage
  std::int64_t first_packed = 0;   ///< the packed element with which `vectors` begins
  float* gradients = nullptr;      ///< gradients of the layer's parameters
  const std::byte* expert_weights = nullptr;
  float* expert_gradients = nullptr;
  const float* constants = nullptr;  ///< DeviceLayer::constants()
  const std::int32_t* tokens = nullptr;
  const std::int32_t* targets = nullptr;  ///< [T] tokens, or labels of samples
  const std::byte* samples = nullptr;     ///< [T] images or vectors, stored, of a layer that reads them
  const float* sample_targets = nullptr;  ///< [T, width] of a squared error
  float* losses = nullptr;                ///< [T] of a layer that ends the model
  float* balance_losses = nullptr;        ///< [T] of a layer with experts
  float gradient_scale = 1;               ///< 1 / tokens of the batch; for a layer that ends the model
  const float* loss_scale = nullptr;
  DeviceTensorGroup tensor;
  DeviceContextGroup context;
  DeviceExpertGroup experts;
  // Dropout draws its masks from the run's seed, the layer's number in the model and the first sample's in the batch.
  std::uint64_t seed = 1;
  int layer_number = 0;
  std::int64_t first_sample = 0;
  const StepNumbers* numbers = nullptr;  ///< one element
  bool rebuilds_cheap = false;           ///< rebuild_cheap() comes before the backward

  /// Returns a gain or bias by its element in the layer's parameters.
  const float* vector(std::int64_t element) const {
    return vectors + (packed == nullptr ? element : packed->place_of(first_element + element) - first_packed);
  }
  /// Returns the key of the layer's dropout of that number.
  DropoutKey dropout_key(std::uint64_t number) const {
    return {.seed = seed, .layer = static_cast<std::uint64_t>(layer_number), .place = number};
  }
};

/// Returns the address of a place in this call; null if it is in memory of others.
inline std::byte* address_of(const DeviceLayerCall& call, TensorPlace place) {
  switch (place.part) {
    case MemoryPart::kEarly:
      return call.early + place.offset;
    case MemoryPart::kLate:
      return call.late + place.offset;
    case MemoryPart::kCheap:
      return call.cheap + place.offset;
    case MemoryPart::kForwardWorkspace:
    case MemoryPart::kBackwardWorkspace:
      return call.workspace + place.offset;
    case MemoryPart::kPassing:
      return call.passing + place.offset;
    case MemoryPart::kNone:
      break;
  }
  return nullptr;
}

}}  // namespace plumb::executor
