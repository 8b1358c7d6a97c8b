#pragma once
// The common part of optimizers that update each element by itself, on a GPU: fp32 master weights, gradients with the
// step's factor, and steps that are skipped.

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"
#include "kernels/step_numbers.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Writes `rule(i, gradient, numbers)`, the element's updated master weight, to the master weights and to the weights
/// that compute, and zeroes the gradients. The rule gets gradients that the step's factor has multiplied. In a step
/// that is skipped it only zeroes the gradients. `update` has weights (may be master itself), master, gradients:
/// [elements], and numbers: one element.
template <class Thread, class Update, class Rule>
PLUMB_SIMT void update_elements(const Thread& thread, const Update& update, const Rule& rule) {
  const StepNumbers of_step = *update.numbers;
  for_each_element(thread, update.elements, [&](std::int64_t i) {
    if (of_step.skips != 0) return store(update.gradients[i], 0.0F);
    const float updated = rule(i, of_step.gradient_factor * widened(update.gradients[i]), of_step);
    update.master[i] = updated;
    store(update.weights[i], updated);
    store(update.gradients[i], 0.0F);
  });
}

}}}  // namespace plumb::kernels::simt
