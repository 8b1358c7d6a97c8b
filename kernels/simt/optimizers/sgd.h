#pragma once
// Gradient descent with momentum on a GPU (kernels/cpu/optimizers/sgd.h has the formula), with fp32 master weights.

#include "kernels/optimizer.h"
#include "kernels/simt/optimizers/update.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Updates the elements by gradient descent in one step (kernels/simt/optimizers/update.h). G is the format of the
/// gradients. All tensors: [elements]
template <class S, class G>
struct SgdUpdate {
  S* weights;
  float* master;
  G* gradients;
  float* momentum;
  std::int64_t elements;
  Sgd optimizer;
  const StepNumbers* numbers;  ///< one element

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    update_elements(thread, *this, [&](std::int64_t i, float gradient, const StepNumbers&) {
      momentum[i] = optimizer.momentum * momentum[i] + (gradient + optimizer.weight_decay * master[i]);
      return master[i] - optimizer.learning_rate * momentum[i];
    });
  }
};

}}}  // namespace plumb::kernels::simt
