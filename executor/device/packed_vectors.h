#pragma once
// What a replaced version of the weights keeps beside its 16-bit copy: the vectors of a stage (gains, biases), which
// kernels read in fp32. They lie between the matrices of the master weights, and here one behind the other.

#include <cstdint>
#include <vector>

#include "executor/cpu/parameter_places.h"
#include "executor/device/device_kernels.h"

namespace plumb {

class PackedVectors {
 public:
  explicit PackedVectors(const ParameterPlaces& places);

  /// Of all vectors.
  std::int64_t elements() const { return elements_; }

  /// Copies them. packed: [elements()], master: the stage's parameters.
  void pack(DeviceKernels& kernels, float* packed, const float* master) const;

  /// Where the stage's parameter that begins at `element`, a vector, begins among them.
  std::int64_t place_of(std::int64_t element) const;

 private:
  struct Range {  // neighbours among the parameters
    std::int64_t first = 0, count = 0;
    std::int64_t packed = 0;
  };

  std::vector<Range> ranges_;  // ascending
  std::int64_t elements_ = 0;
};

}  // namespace plumb
