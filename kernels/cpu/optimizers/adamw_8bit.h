#pragma once
// One AdamW update of one tensor whose moments take a byte an element. They are quantised in blocks: each block of
// kQuantisationBlock elements is divided by its largest magnitude and rounded to the nearest of 256 values of the
// dynamic map (Dettmers et al. 2022, sections 2 and 3), so that an outlier spoils only its own block.

#include <array>
#include <cstdint>

#include "kernels/optimizer.h"

namespace plumb { inline namespace kernels {

inline constexpr std::int64_t kQuantisationBlock = 2048;

/// Returns the blocks of a tensor of so many elements; the last one may be shorter.
constexpr std::int64_t quantisation_blocks(std::int64_t elements) {
  return (elements + kQuantisationBlock - 1) / kQuantisationBlock;
}

/// The 256 values of the dynamic map, ascending, 0 and 1 among them. Decade 10^-e (e = 0..6) has 2^(6-e) values of each
/// sign, or 2^(7-e) where there is one sign: the middles of equal parts of [0.1, 1] of the decade.
const std::array<float, 256>& signed_dynamic_map();
const std::array<float, 256>& unsigned_dynamic_map();

/// Returns the code of the value of `map` that is nearest to `value`; of two that are equally near, the lower one.
std::uint8_t nearest_code(const std::array<float, 256>& map, float value);

/// The quantised values of a moment: value i is map[codes[i]] * scales[i / kQuantisationBlock]. A scale of 0, with any
/// codes, makes zeros.
struct QuantisedMoment {
  std::uint8_t* codes = nullptr;  // [elements]
  float* scales = nullptr;        // [quantisation_blocks(elements)]
};

/// Updates as adamw_update does, from the values of the moments. It then quantises them again: the first moment by the
/// signed map, the second by the unsigned one. parameters, gradients: [elements]
void adamw_8bit_update(float* parameters, float* gradients, const QuantisedMoment& first_moment,
                       const QuantisedMoment& second_moment, std::int64_t elements, const AdamW& optimizer,
                       std::int64_t step);

}}  // namespace plumb::kernels
