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

  friend bool operator==(const ParameterTensor&, const ParameterTensor&) = default;
};

/// Returns the elements of one tensor.
inline std::int64_t element_count(const ParameterTensor& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  return count;
}

}}  // namespace plumb::kernels
