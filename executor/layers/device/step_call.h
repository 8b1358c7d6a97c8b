#pragma once
// One step of a layer's program in a micro-batch's pass: the addresses of what it reads and writes.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/layers/device/placed_program.h"

namespace plumb { inline namespace executor {

struct StepCall {
  const PlacedProgram& program;
  const LayerStep& step;
  const DeviceLayerCall& call;
  void* output = nullptr;          ///< where the layer behind takes its input, in a forward
  void* input_gradient = nullptr;  ///< where the layer before takes its gradient, in an input gradient

  DeviceKernels& kernels() const { return call.kernels; }
  bool is_forward() const { return step.pass == Pass::kForward; }
  /// The shape of a kernel, its rows and its columns.
  const std::vector<std::int64_t>& shape() const { return step.call()->shape; }
  std::int64_t rows() const { return shape()[0]; }
  std::int64_t columns() const { return shape()[1]; }

  const LayerTensor& tensor_read(std::size_t i) const { return program.tensor(step.reads[i]); }
  const LayerTensor& tensor_written(std::size_t i) const { return program.tensor(step.writes[i]); }
  std::byte* at(int tensor) const {
    if (program.is_stored_at(tensor, program.plain().output)) return static_cast<std::byte*>(output);
    if (program.is_stored_at(tensor, program.plain().input_gradient)) return static_cast<std::byte*>(input_gradient);
    return address_of(call, program.place_of(tensor));
  }
  float* floats_at(int tensor) const { return reinterpret_cast<float*>(at(tensor)); }
  std::int32_t* integers_at(int tensor) const { return reinterpret_cast<std::int32_t*>(at(tensor)); }

  std::byte* read(std::size_t i) const { return at(step.reads[i]); }
  float* floats_read(std::size_t i) const { return floats_at(step.reads[i]); }
  std::byte* written(std::size_t i) const { return at(step.writes[i]); }
  float* floats_written(std::size_t i) const { return floats_at(step.writes[i]); }
  std::int32_t* integers_written(std::size_t i) const { return integers_at(step.writes[i]); }

  /// Return the step's parameter number `i` as it is stored, and in fp32; null if it has fewer.
  const std::byte* weight(std::size_t i) const {
    if (i >= step.parameters.size()) return nullptr;
    const std::byte* const first = program.is_of_experts(step.parameters[i]) ? call.expert_weights : call.weights;
    return first + program.first_element(step.parameters[i]) * program.element_bytes();
  }
  const float* vector(std::size_t i) const {
    return i >= step.parameters.size() ? nullptr : call.vector(program.first_element(step.parameters[i]));
  }
  /// Returns where the step adds to the gradient of its parameter number `i`.
  float* gradient(std::size_t i) const {
    float* const first = program.is_of_experts(step.gradients[i]) ? call.expert_gradients : call.gradients;
    return first + program.first_element(step.gradients[i]);
  }
};

}}  // namespace plumb::executor
