#pragma once
// Numbers of one optimizer step, in a device's memory: a replay's kernels read them there, so that every replay is the
// same calls.

#include <cstdint>

namespace plumb { inline namespace kernels {

struct StepNumbers {
  float first_correction = 1;   ///< AdamW's 1 - beta1^t
  float second_correction = 1;  ///< 1 - beta2^t
  float loss_scale = 1;         ///< what the loss's gradient is multiplied by
  float gradient_factor = 1;    ///< what gradients are multiplied by before the update: undoes that, and clips
  float skips = 0;              ///< not 0: gradients overflow, and weights and moments stay as they are
  float square_sum = 0;         ///< of all gradients, loss scale included
  float fresh_share = 1;        ///< Adafactor's t^-exponent: what newest gradients have of the second moment
  std::uint64_t replay = 0;     ///< which replay of the run this is: dropout draws its masks from it
};

}}  // namespace plumb::kernels
