#pragma once
// The vectors of a stage (gains, biases), which kernels read in fp32, beside 16-bit weights that have no whole master
// copy: a replaced version, or weights gathered from shares. They lie between the matrices of the master weights, and
// here one behind the other.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/kernels/device_kernels.h"
#include "executor/layers/parameter_places.h"

namespace plumb { inline namespace executor {

class PackedVectors {
 public:
  explicit PackedVectors(const ParameterPlaces& places);

  /// Elements of all vectors.
  std::int64_t elements() const { return elements_; }

  /// Copies the vectors. packed: [elements()], master: the stage's parameters.
  void pack(DeviceKernels& kernels, float* packed, const float* master) const;

  /// Returns the vectors [elements()] of master weights on the host.
  std::vector<float> packed(std::span<const float> master) const;

  /// Widens the vectors of weights as they are stored, in elements of that many bytes.
  void widen(DeviceKernels& kernels, float* packed, const std::byte* stored, std::int64_t element_bytes) const;

  /// Widens the vectors within a range of the stage's parameters. packed: from the first of them on; stored: from the
  /// range's first element on.
  void widen_within(DeviceKernels& kernels, ElementRange within, float* packed, const std::byte* stored,
                    std::int64_t element_bytes) const;
  /// Adds the vectors of a range to packed ones of the whole stage, or adds the packed ones to them and clears the
  /// packed ones. values: in fp32, from the range's first element on.
  void add_within(DeviceKernels& kernels, ElementRange within, float* packed, const float* values) const;
  void take_within(DeviceKernels& kernels, ElementRange within, float* values, float* packed) const;
  /// Elements of vectors before an element of the stage.
  std::int64_t count_before(std::int64_t element) const;

  /// Returns where the vector that begins at `element` of the stage begins among the packed ones.
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
