#pragma once
// What optimizers that update each element by itself have in common on a GPU: fp32 master weights, gradients with the
// step's factor, a step that is skipped.

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"
#include "kernels/step_numbers.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Writes `rule(i, gradient, numbers)`, the element's updated master weight, to the master weights and to those that
/// compute, and zeroes the gradients, which the step's factor has multiplied first; in a step that is skipped zeroes
/// the gradients alone. `update` has weights (may be master itself), master, gradients: [elements], and numbers: one.
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
