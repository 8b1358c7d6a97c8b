#pragma once
// The vectors of a stage (gains, biases), which kernels read in fp32, beside 16-bit weights that have no whole master
// copy: a replaced version, or weights gathered from shares. They lie between the matrices of the master weights, and
// here one behind the other.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/cpu/parameters/parameter_places.h"
#include "executor/device/kernels/device_kernels.h"

namespace plumb { inline namespace executor {

class PackedVectors {
 public:
  explicit PackedVectors(const ParameterPlaces& places);

  /// Of all vectors.
  std::int64_t elements() const { return elements_; }

  /// Copies them. packed: [elements()], master: the stage's parameters.
  void pack(DeviceKernels& kernels, float* packed, const float* master) const;

  /// The same on the host. Returns [elements()].
  std::vector<float> packed(std::span<const float> master) const;

  /// From weights as they are stored, in elements of that many bytes.
  void widen(DeviceKernels& kernels, float* packed, const std::byte* stored, std::int64_t element_bytes) const;

  /// Those within a range of the stage's parameters. packed: from the first of them on; stored: from the range's first
  /// element on.
  void widen_within(DeviceKernels& kernels, ElementRange within, float* packed, const std::byte* stored,
                    std::int64_t element_bytes) const;
  /// Adds the vectors of a range to packed ones of the whole stage, or takes these out into them. values: in fp32, from
  /// the range's first element on.
  void add_within(DeviceKernels& kernels, ElementRange within, float* packed, const float* values) const;
  void take_within(DeviceKernels& kernels, ElementRange within, float* values, float* packed) const;
  /// Vectors' elements before that one of the stage.
  std::int64_t count_before(std::int64_t element) const;

  /// Where the stage's parameter that begins at `element`, a vector, begins among them.
  std::int64_t place_of(std::int64_t element) const;

 private:
  struct Range {  // neighbours among the parameters
    std::int64_t first = 0, count = 0;
    std::int64_t packed = 0;
  };

  template <class Visit>
  void for_each_within(ElementRange within, Visit visit) const;

  std::vector<Range> ranges_;  // ascending
  std::int64_t elements_ = 0;
};

}}  // namespace plumb::executor
