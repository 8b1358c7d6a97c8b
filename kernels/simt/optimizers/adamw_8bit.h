#pragma once
// AdamW on a GPU with moments of a byte an element (kernels/cpu/optimizers/adamw_8bit.h has the maps and the formula).
// A block of threads takes a quantisation block, whose scales come from the largest magnitudes over the block.

#include "kernels/cpu/optimizers/adamw_8bit.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"
#include "kernels/step_numbers.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Returns the code of the value of `map` (256 ascending values) that is nearest to `value`; of two that are equally
/// near, the lower one.
PLUMB_SIMT std::uint8_t nearest_code_of(const float* map, float value) {
  int low = 0;
  int high = 256;  // the first value that is not below `value` is in [low, high]
  while (low < high) {
    const int middle = (low + high) / 2;
    if (map[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return 0;
  if (low == 256) return 255;
  return static_cast<std::uint8_t>(value - map[low - 1] <= map[low] - value ? low - 1 : low);
}

/// Updates the master weights and moments, writes the weights that compute, and zeroes the gradients; in a step that is
/// skipped (kernels/step_numbers.h) it only zeroes the gradients. The moments are computed twice, once for the scales
/// and once for the update, and so never stored in fp32. codes: [elements]; scales: [quantisation_blocks(elements)];
/// maps: [256]; all others [elements]
template <class S, class G>
struct AdamW8BitUpdate {
  S* weights;
  float* master;
  G* gradients;
  QuantisedMoment first;
  QuantisedMoment second;
  const float* signed_map;
  const float* unsigned_map;
  std::int64_t elements;
  AdamW optimizer;
  const StepNumbers* numbers;  ///< one element

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const StepNumbers of_step = *numbers;
    const float factor = of_step.gradient_factor;
    const std::int64_t blocks = (elements + kQuantisationBlock - 1) / kQuantisationBlock;
    for (std::int64_t block = thread.block(); block < blocks; block += thread.blocks()) {
      const std::int64_t begin = block * kQuantisationBlock;
      const std::int64_t end = begin + kQuantisationBlock < elements ? begin + kQuantisationBlock : elements;
      if (of_step.skips != 0) {
        for (std::int64_t i = begin + thread.lane(); i < end; i += thread.lanes()) store(gradients[i], 0.0F);
        continue;
      }
      float largest_first = 0;
      float largest_second = 0;
      for (std::int64_t i = begin + thread.lane(); i < end; i += thread.lanes()) {
        largest_first = Larger{}(largest_first, fabsf(first_of(block, i, factor)));
        largest_second = Larger{}(largest_second, second_of(block, i, factor));
      }
      const float first_scale = combine_over_block(thread, largest_first, Larger{});
      const float second_scale = combine_over_block(thread, largest_second, Larger{});
      const float first_inverse = first_scale > 0 ? 1.0F / first_scale : 0.0F;
      const float second_inverse = second_scale > 0 ? 1.0F / second_scale : 0.0F;
      for (std::int64_t i = begin + thread.lane(); i < end; i += thread.lanes()) {
        const float m = first_of(block, i, factor);
        const float v = second_of(block, i, factor);
        const float step = m / of_step.first_correction / (sqrtf(v / of_step.second_correction) + optimizer.epsilon);
        const float updated = master[i] - optimizer.learning_rate * (step + optimizer.weight_decay * master[i]);
        master[i] = updated;
        store(weights[i], updated);
        store(gradients[i], 0.0F);
        first.codes[i] = nearest_code_of(signed_map, m * first_inverse);
        second.codes[i] = nearest_code_of(unsigned_map, v * second_inverse);
      }
      thread.sync();  // every lane has read the old scales
      if (thread.lane() == 0) {
        first.scales[block] = first_scale;
        second.scales[block] = second_scale;
      }
    }
  }

 private:
  PLUMB_SIMT float first_of(std::int64_t block, std::int64_t i, float factor) const {
    const float old = first.scales[block] * signed_map[first.codes[i]];
    return optimizer.beta1 * old + (1.0F - optimizer.beta1) * factor * widened(gradients[i]);
  }
  PLUMB_SIMT float second_of(std::int64_t block, std::int64_t i, float factor) const {
    const float old = second.scales[block] * unsigned_map[second.codes[i]];
    const float gradient = factor * widened(gradients[i]);
    return optimizer.beta2 * old + (1.0F - optimizer.beta2) * gradient * gradient;
  }
};

}}}  // namespace plumb::kernels::simt
