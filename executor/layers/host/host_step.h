#pragma once
// One step of a layer's program in a micro-batch's pass on the CPU: what it reads and writes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/layers/host/layer_call.h"
#include "kernels/layer/layer_ends.h"

namespace plumb { inline namespace executor {

struct HostStep {
  const HostProgram& program;
  const LayerStep& step;
  const LayerCall& call;
  LayerSaved& saved;
  Tensor& beside;  ///< the first result of a step that writes beside the storage which it then takes; otherwise empty

  const CpuContext& context() const { return call.context; }
  const CpuKernelSet& kernels() const { return call.context.kernels; }
  bool is_forward() const { return step.pass == Pass::kForward; }
  /// The shape of a kernel, its rows and its columns.
  const std::vector<std::int64_t>& shape() const { return step.call()->shape; }
  std::int64_t rows() const { return shape()[0]; }
  std::int64_t columns() const { return shape()[1]; }

  Tensor& tensor_read(std::size_t i) const { return saved.at(step.reads[i]); }
  Tensor& tensor_written(std::size_t i) const { return step.beside && i == 0 ? beside : saved.at(step.writes[i]); }
  float* read(std::size_t i) const { return tensor_read(i).data(); }
  float* written(std::size_t i) const { return tensor_written(i).data(); }

  /// Return the step's parameter number `i`, null if it has fewer; and where the step adds to its gradient.
  const float* weight(std::size_t i) const {
    if (i >= step.parameters.size()) return nullptr;
    const float* const first = program.is_of_experts(step.parameters[i]) ? call.expert_weights : call.weights;
    return first + program.first_element(step.parameters[i]);
  }
  float* gradient(std::size_t i) const {
    float* const first = program.is_of_experts(step.gradients[i]) ? call.expert_gradients : call.gradients;
    return first + program.first_element(step.gradients[i]);
  }
};

}}  // namespace plumb::executor
