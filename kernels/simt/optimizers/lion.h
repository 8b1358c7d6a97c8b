#pragma once
// Lion on a GPU (kernels/cpu/optimizers/lion.h has the formula), with fp32 master weights.

#include "kernels/optimizer.h"
#include "kernels/simt/optimizers/update.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Updates the elements by Lion in one step (kernels/simt/optimizers/update.h). G is the format of the gradients. All
/// tensors: [elements]
template <class S, class G>
struct LionUpdate {
  S* weights;
  float* master;
  G* gradients;
  float* momentum;
  std::int64_t elements;
  Lion optimizer;
  const StepNumbers* numbers;  ///< one element

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    update_elements(thread, *this, [&](std::int64_t i, float gradient, const StepNumbers&) {
      const float m = momentum[i];
      const float blend = optimizer.beta1 * m + (1.0F - optimizer.beta1) * gradient;
      const float sign = static_cast<float>(blend > 0.0F) - static_cast<float>(blend < 0.0F);
      momentum[i] = optimizer.beta2 * m + (1.0F - optimizer.beta2) * gradient;
      return master[i] - optimizer.learning_rate * (sign + optimizer.weight_decay * master[i]);
    });
  }
};

}}}  // namespace plumb::kernels::simt
