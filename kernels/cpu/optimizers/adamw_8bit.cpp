#include "kernels/cpu/optimizers/adamw_8bit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/cpu/optimizers/adamw.h"

namespace plumb { inline namespace kernels {
namespace {

using Map = std::array<float, 256>;
using QuantisedBlock = std::array<float, static_cast<std::size_t>(kQuantisationBlock)>;

Map dynamic_map(bool has_sign) {
  constexpr int kDecades = 7;
  Map map{};  // 0 is in the map; the last of the positive values is 1
  std::size_t next = 1;
  map[next++] = 1.0F;
  for (int decade = 0; decade < kDecades; ++decade) {  // 10^-6 first
    const int parts = 1 << (has_sign ? decade : decade + 1);
    const double power = std::pow(10.0, decade - (kDecades - 1));
    for (int part = 0; part < parts; ++part) {
      const auto value = static_cast<float>(power * (0.1 + 0.9 * (part + 0.5) / parts));
      map[next++] = value;
      if (has_sign) map[next++] = -value;
    }
  }
  std::ranges::sort(map);
  return map;
}

void widen(QuantisedBlock& values, const Map& map, const std::uint8_t* codes, float scale, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = scale * map[codes[i]];
}

/// Quantises one block and returns its scale.
float quantise(std::uint8_t* codes, const Map& map, const QuantisedBlock& values, std::size_t count) {
  float scale = 0;
  for (std::size_t i = 0; i < count; ++i) scale = std::max(scale, std::abs(values[i]));
  const float inverse = scale > 0 ? 1.0F / scale : 0.0F;
  for (std::size_t i = 0; i < count; ++i) codes[i] = nearest_code(map, values[i] * inverse);
  return scale;
}

}  // namespace

const Map& signed_dynamic_map() {
  static const Map map = dynamic_map(true);
  return map;
}

const Map& unsigned_dynamic_map() {
  static const Map map = dynamic_map(false);
  return map;
}

std::uint8_t nearest_code(const Map& map, float value) {
  const auto above = static_cast<std::size_t>(std::ranges::lower_bound(map, value) - map.begin());
  if (above == 0) return 0;
  if (above == map.size()) return static_cast<std::uint8_t>(map.size() - 1);
  return static_cast<std::uint8_t>(value - map[above - 1] <= map[above] - value ? above - 1 : above);
}

void adamw_8bit_update(float* parameters, float* gradients, const QuantisedMoment& first_moment,
                       const QuantisedMoment& second_moment, std::int64_t elements, const AdamW& optimizer,
                       std::int64_t step) {
  QuantisedBlock first, second;
  for (std::int64_t block = 0; block < quantisation_blocks(elements); ++block) {
    const std::int64_t begin = block * kQuantisationBlock;
    const std::int64_t count = std::min(kQuantisationBlock, elements - begin);
    const auto size = static_cast<std::size_t>(count);
    widen(first, signed_dynamic_map(), first_moment.codes + begin, first_moment.scales[block], size);
    widen(second, unsigned_dynamic_map(), second_moment.codes + begin, second_moment.scales[block], size);
    adamw_update(parameters + begin, gradients + begin, first.data(), second.data(), count, optimizer, step);
    first_moment.scales[block] = quantise(first_moment.codes + begin, signed_dynamic_map(), first, size);
    second_moment.scales[block] = quantise(second_moment.codes + begin, unsigned_dynamic_map(), second, size);
  }
}

}}  // namespace plumb::kernels
