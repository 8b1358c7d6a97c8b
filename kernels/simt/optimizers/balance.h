#pragma once
// The update of a router's bias of picks on a GPU (Wang et al. 2024, 2408.15664), which no optimizer trains.

#include "kernels/simt/optimizers/update.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Moves each bias by `rate` against the sign of its gradient, which is the excess of its expert's picks
/// (kernels/simt/optimizers/update.h). All tensors: [elements]
template <class S>
struct BalanceUpdate {
  S* weights;
  float* master;
  float* gradients;
  std::int64_t elements;
  float rate;
  const StepNumbers* numbers;  ///< one element

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    update_elements(thread, *this, [&](std::int64_t i, float excess, const StepNumbers&) {
      const float sign = static_cast<float>(excess > 0.0F) - static_cast<float>(excess < 0.0F);
      return master[i] - rate * sign;
    });
  }
};

}}}  // namespace plumb::kernels::simt
