#pragma once
// A layer's program on one rank of a device (kernels/layer/program/program.h), with the places of its tensors in the
// memory of a micro-batch (kernels/layer/program/places.h) and those of its parameters in the stage's.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/layers/device/device_seat.h"
#include "executor/layers/device/layer_call.h"
#include "kernels/layer.h"

namespace plumb { inline namespace executor {

class PlacedProgram {
 public:
  /// `layer` is whole, and `own` has this rank's tokens.
  PlacedProgram(const Layer& layer, const LayerWork& own, std::int64_t element_bytes, const DeviceSeat& seat);

  const Layer& layer() const { return layer_; }  ///< whole
  const Layer& share() const { return share_; }  ///< of this tensor rank; it counts all experts
  const LayerWork& own() const { return own_; }
  const DeviceSeat& seat() const { return seat_; }
  std::int64_t element_bytes() const { return element_bytes_; }

  /// The program without fused steps: its tensors and parameters are those of the steps below.
  const LayerProgram& plain() const { return plain_; }
  const LayerTensor& tensor(int tensor) const { return plain_.tensors[static_cast<std::size_t>(tensor)]; }
  /// Returns the steps of a pass as a device fuses them. `rebuilds_cheap`: recomputation is selective.
  std::span<const LayerStep> steps(Pass pass, bool rebuilds_cheap) const {
    return steps_of(fused_[rebuilds_cheap ? 1 : 0], pass);
  }

  /// Bytes that the tensors need of a micro-batch.
  const DeviceBytes& bytes() const { return bytes_; }
  /// Returns the place of a tensor; of one that is a rank's block of another, within it. kNone if the tensor is -1.
  TensorPlace place_of(int tensor) const {
    return tensor < 0 ? TensorPlace{} : places_[static_cast<std::size_t>(tensor)];
  }
  /// True if both tensors share their storage; false if one is -1.
  bool is_stored_at(int tensor, int other) const {
    return tensor >= 0 && other >= 0 &&
           first_in_storage_[static_cast<std::size_t>(tensor)] == first_in_storage_[static_cast<std::size_t>(other)];
  }

  /// True if the parameter is one of routed experts, which lie by themselves.
  bool is_of_experts(int parameter) const { return plain_.parameters[static_cast<std::size_t>(parameter)].expert; }
  /// Returns the parameter's first element among the layer's parameters, or among those of its routed experts.
  std::int64_t first_element(int parameter) const { return first_elements_[static_cast<std::size_t>(parameter)]; }

 private:
  Layer layer_, share_;
  LayerWork own_;
  DeviceSeat seat_;
  std::int64_t element_bytes_;
  LayerProgram plain_;
  std::array<LayerProgram, 2> fused_;  // [whether recomputation is selective]
  std::vector<int> first_in_storage_;  // [tensor]
  std::vector<TensorPlace> places_;    // [tensor]
  DeviceBytes bytes_;
  std::vector<std::int64_t> first_elements_;  // [parameter]
};

}}  // namespace plumb::executor
