#pragma once
// The memory that a layer takes on a device that runs Plumb's own kernels (executor/device/layers), by how long it is
// needed. It is more than saved_tensors() lists: the gradient of a block's output has a place from F on, so that it
// need not be copied, and experts have room for all rows that a router may send them.
//
// It covers the layers of token models, on one rank of a tensor group and an expert group. The additional memory of a
// context group is not counted.

#include <cstdint>

#include "kernels/layer/kinds.h"
#include "kernels/layer/layer_work.h"

namespace plumb { inline namespace kernels {

/// The tensors of a device's layer begin at multiples of this many bytes, as vectorised loads require.
inline constexpr std::int64_t kDeviceTensorAlignment = 256;

/// Returns the bytes of a tensor together with the padding behind it.
constexpr std::int64_t aligned_bytes(std::int64_t bytes) {
  return (bytes + kDeviceTensorAlignment - 1) / kDeviceTensorAlignment * kDeviceTensorAlignment;
}

/// Bytes that a layer takes for one micro-batch.
struct DeviceBytes {
  std::int64_t early = 0;  ///< from F until I
  std::int64_t late = 0;   ///< from F until W
  std::int64_t cheap = 0;  ///< from F until W, but recomputed cheaply from the others: outputs of norms and activations
  std::int64_t forward_workspace = 0;
  std::int64_t backward_workspace = 0;  ///< peak of I and of W
};

/// True if device_bytes() knows the kind of layer.
bool has_device_bytes(const Layer& layer);

/// Returns the bytes of a layer whose tensors store an element in `element_bytes`. Asserts has_device_bytes().
DeviceBytes device_bytes(const Layer& layer, const LayerWork& work, std::int64_t element_bytes);

/// Bytes of a layer where a micro-batch comes in slices of its sequences: the keys and values of all slices, and their
/// gradients (fp32), which are kept until the last slice's I. Both are 0 for a layer that is no block.
struct SequenceBytes {
  std::int64_t kept = 0;
  std::int64_t gradients = 0;
};
SequenceBytes sequence_bytes(const Layer& layer, const LayerWork& work, std::int64_t element_bytes);

}}  // namespace plumb::kernels
