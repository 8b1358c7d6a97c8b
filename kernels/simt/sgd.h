#pragma once
// Gradient descent with momentum on a GPU (kernels/cpu/sgd.h has the formula), with fp32 master weights.

#include "kernels/optimizer.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"
#include "kernels/step_numbers.h"

namespace plumb::simt {

/// Updates the master weights and the momentum, writes the weights that compute, zeroes the gradients, which the step's
/// factor multiplies first; in a step that is skipped zeroes the gradients alone. weights may be master itself. All:
/// [elements]; G is how gradients are stored.
template <class S, class G>
struct SgdUpdate {
  S* weights;
  float* master;
  G* gradients;
  float* momentum;
  std::int64_t elements;
  Sgd optimizer;
  const StepNumbers* numbers;  ///< one

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const StepNumbers of_step = *numbers;
    for_each_element(thread, elements, [&](std::int64_t i) {
      if (of_step.skips != 0) return store(gradients[i], 0.0F);
      const float gradient = of_step.gradient_factor * widened(gradients[i]);
      const float m = optimizer.momentum * momentum[i] + (gradient + optimizer.weight_decay * master[i]);
      const float updated = master[i] - optimizer.learning_rate * m;
      momentum[i] = m;
      master[i] = updated;
      store(weights[i], updated);
      store(gradients[i], 0.0F);
    });
  }
};

}  // namespace plumb::simt
