#include "executor/device/stage/packed_vectors.h"

#include <algorithm>
#include <cassert>

namespace plumb {

PackedVectors::PackedVectors(const ParameterPlaces& places) {
  for (const PlacedParameter& parameter : places.parameters) {
    if (parameter.tensor.shape.size() > 1) continue;
    if (ranges_.empty() || ranges_.back().first + ranges_.back().count != parameter.first)
      ranges_.push_back({.first = parameter.first, .packed = elements_});
    ranges_.back().count += parameter.count;
    elements_ += parameter.count;
  }
}

void PackedVectors::pack(DeviceKernels& kernels, float* packed, const float* master) const {
  for (const Range& range : ranges_)
    kernels.copy(packed + range.packed, master + range.first, range.count * std::int64_t{sizeof(float)});
}

std::vector<float> PackedVectors::packed(std::span<const float> master) const {
  std::vector<float> values(static_cast<std::size_t>(elements_));
  for (const Range& range : ranges_)
    std::copy_n(master.begin() + range.first, range.count, values.begin() + range.packed);
  return values;
}

void PackedVectors::widen(DeviceKernels& kernels, float* packed, const std::byte* stored,
                          std::int64_t element_bytes) const {
  for (const Range& range : ranges_)
    kernels.widen(packed + range.packed, stored + range.first * element_bytes, range.count);
}

std::int64_t PackedVectors::place_of(std::int64_t element) const {
  const auto after = std::ranges::upper_bound(ranges_, element, {}, &Range::first);
  assert(after != ranges_.begin());
  const Range& range = *(after - 1);
  assert(element < range.first + range.count);
  return range.packed + element - range.first;
}

}  // namespace plumb
