#pragma once
// The places of a layer's tensors in the memory of a device that runs Plumb's own kernels (executor/layers/device), and
// the bytes that they take. A device's program is made for Machine::kDevice (program.h).
//
// Each tensor that the backward needs has a place from the forward on, and so do the gradients of a block's output and of
// its experts' outputs, so that nothing has to be copied. Temporaries are laid out like the variables of nested blocks of a
// language: those of the layer come first, those of a section lie behind them, and sections that follow each other use
// the same memory.

#include <cstdint>
#include <vector>

#include "kernels/layer/program/program.h"

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
  std::int64_t passing = 0;  ///< the largest tensor that goes from one layer's pass to the next layer's
  std::int64_t forward_workspace = 0;
  std::int64_t backward_workspace = 0;  ///< peak of I and of W

  friend bool operator==(const DeviceBytes&, const DeviceBytes&) = default;
};

/// The part of a layer's memory in which a tensor lies.
/// kPassing: an input that F alone reads, or an output's gradient that I alone reads; layers use one of two such places
/// in turn.
enum class MemoryPart : std::uint8_t { kNone, kEarly, kLate, kCheap, kPassing, kForwardWorkspace, kBackwardWorkspace };

struct TensorPlace {
  MemoryPart part = MemoryPart::kNone;  ///< kNone: memory of others
  std::int64_t offset = 0;              ///< bytes from the beginning of the part
};

struct LayerPlaces {
  std::vector<TensorPlace> places;  ///< [tensor]
  DeviceBytes bytes;
};

/// Returns the places of tensors that store an element in `element_bytes`.
LayerPlaces layer_places(const LayerProgram& program, std::int64_t element_bytes);

/// Bytes of a layer where a micro-batch comes in slices of its sequences: the keys and values of all slices, and their
/// gradients (fp32), which are kept until the last slice's I. Both are 0 for a layer without attention.
struct SequenceBytes {
  std::int64_t kept = 0;
  std::int64_t gradients = 0;
};
SequenceBytes sequence_bytes(const LayerProgram& program, std::int64_t element_bytes);

}}  // namespace plumb::kernels
