#pragma once
// The memory that a layer takes on a device of Plumb's own (executor/device/layers), by how long it is needed. It is
// more than saved_tensors() has: the gradient of a block's output has a place from F on, so that it need not be copied,
// and experts have room for all rows that a router may send them.
//
// Of token models' layers, on one rank of a tensor and an expert group. What a context group
// needs besides is not counted.

#include <cstdint>

#include "kernels/layer/kinds.h"
#include "kernels/layer/layer_work.h"

namespace plumb { inline namespace kernels {

/// Tensors of a device's layer are multiples of it apart: what vectorised loads ask for.
inline constexpr std::int64_t kDeviceTensorAlignment = 256;

/// Of a tensor of so many, with what is between it and the next one.
constexpr std::int64_t aligned_bytes(std::int64_t bytes) {
  return (bytes + kDeviceTensorAlignment - 1) / kDeviceTensorAlignment * kDeviceTensorAlignment;
}

/// Of a micro-batch.
struct DeviceBytes {
  std::int64_t early = 0;  ///< from F until I
  std::int64_t late = 0;   ///< from F until W
  std::int64_t cheap = 0;  ///< likewise, and made again at once from the others: outputs of norms and activations
  std::int64_t forward_workspace = 0;
  std::int64_t backward_workspace = 0;  ///< of I, and of W
};

/// Whether device_bytes() knows the kind.
bool has_device_bytes(const Layer& layer);

/// `element_bytes` of what tensors are stored in. Asserts has_device_bytes().
DeviceBytes device_bytes(const Layer& layer, const LayerWork& work, std::int64_t element_bytes);

/// Where a micro-batch comes in slices of its sequences: what a layer keeps of the keys and values of all of them, and
/// owes to these (fp32), until the last slice's I. Nothing of what is no block.
struct SequenceBytes {
  std::int64_t kept = 0;
  std::int64_t gradients = 0;
};
SequenceBytes sequence_bytes(const Layer& layer, const LayerWork& work, std::int64_t element_bytes);

}}  // namespace plumb::kernels
