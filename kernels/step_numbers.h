#pragma once
// The numbers of one optimizer step, which lie in a device's memory. A replay's kernels read them there, so that every
// replay makes the same calls.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct StepNumbers {
  float first_correction = 1;   ///< AdamW's 1 - beta1^t
  float second_correction = 1;  ///< AdamW's 1 - beta2^t
  float loss_scale = 1;         ///< factor of the loss's gradient
  float gradient_factor = 1;    ///< factor of the gradients before the update: it undoes the loss scale, and clips
  float skips = 0;              ///< not 0: gradients overflow, so weights and moments stay as they are
  float square_sum = 0;         ///< sum of squares of all gradients, loss scale included
  float fresh_share = 1;        ///< Adafactor's t^-exponent: the share of the newest gradients in the second moment
  std::uint64_t replay = 0;     ///< number of this replay in the run, from which dropout draws its masks
};

}}  // namespace plumb::kernels
