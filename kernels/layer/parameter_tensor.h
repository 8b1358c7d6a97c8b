#pragma once
// A parameter of a layer.

#include <cstdint>
#include <string>
#include <vector>

namespace plumb { inline namespace kernels {

/// A parameter tensor, row-major.
struct ParameterTensor {
  std::string name;                 ///< e.g. "qkv.weight"
  std::vector<std::int64_t> shape;  ///< e.g. [h + 2kd, h]: [out, in] for matrices
  int split_dimension = -1;         ///< dimension that tensor parallelism divides; -1: replicated
  /// True if the tensor belongs to the routed experts, which expert parallelism divides: [experts, out, in].
  bool expert = false;

  /// True for gains, biases and sinks: they begin at a constant and have no weight decay.
  bool is_vector() const { return shape.size() == 1 || name.ends_with(".bias"); }

  friend bool operator==(const ParameterTensor&, const ParameterTensor&) = default;
};

/// Returns the elements of one tensor.
inline std::int64_t element_count(const ParameterTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

/// Returns the first element of each parameter in the memory of its part: routed experts lie apart from all others.
inline std::vector<std::int64_t> first_elements(const std::vector<ParameterTensor>& parameters) {
  std::vector<std::int64_t> first;
  std::int64_t of_layer = 0, of_experts = 0;
  for (const ParameterTensor& parameter : parameters) {
    std::int64_t& elements = parameter.expert ? of_experts : of_layer;
    first.push_back(elements);
    elements += element_count(parameter);
  }
  return first;
}

}}  // namespace plumb::kernels
