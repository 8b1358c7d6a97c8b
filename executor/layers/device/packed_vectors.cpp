#include "executor/layers/device/packed_vectors.h"

#include <algorithm>
#include <cassert>

namespace plumb { inline namespace executor {

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

/// Calls visit(first element, its place among packed ones, count) for each run of vectors in a range.
template <class Visit>
void PackedVectors::for_each_within(ElementRange within, Visit visit) const {
  for (const Range& range : ranges_) {
    const std::int64_t first = std::max(range.first, within.first);
    const std::int64_t end = std::min(range.first + range.count, within.first + within.count);
    if (first < end) visit(first, range.packed + (first - range.first), end - first);
  }
}

void PackedVectors::widen_within(DeviceKernels& kernels, ElementRange within, float* packed, const std::byte* stored,
                                 std::int64_t element_bytes) const {
  const std::int64_t before = count_before(within.first);
  for_each_within(within, [&](std::int64_t first, std::int64_t place, std::int64_t count) {
    kernels.widen(packed + (place - before), stored + (first - within.first) * element_bytes, count);
  });
}

void PackedVectors::add_within(DeviceKernels& kernels, ElementRange within, float* packed, const float* values) const {
  for_each_within(within, [&](std::int64_t first, std::int64_t place, std::int64_t count) {
    kernels.add_gradients(packed + place, packed + place, values + (first - within.first), count);
  });
}

void PackedVectors::take_within(DeviceKernels& kernels, ElementRange within, float* values, float* packed) const {
  for_each_within(within, [&](std::int64_t first, std::int64_t place, std::int64_t count) {
    float* const to = values + (first - within.first);
    kernels.add_gradients(to, to, packed + place, count);
    kernels.fill_zero(packed + place, count);
  });
}

std::int64_t PackedVectors::count_before(std::int64_t element) const {
  std::int64_t before = 0;
  for (const Range& range : ranges_) before += std::clamp<std::int64_t>(element - range.first, 0, range.count);
  return before;
}

std::int64_t PackedVectors::place_of(std::int64_t element) const {
  const auto after = std::ranges::upper_bound(ranges_, element, {}, &Range::first);
  assert(after != ranges_.begin());
  const Range& range = *(after - 1);
  assert(element < range.first + range.count);
  return range.packed + element - range.first;
}

}}  // namespace plumb::executor
