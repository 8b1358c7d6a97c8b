#pragma once
// AdamW on a GPU (kernels/cpu/optimizers/adamw.h has the formula) with fp32 master weights, and the sum of squares that
// clipping and loss scaling need.

#include "kernels/optimizer.h"
#include "kernels/simt/number.h"
#include "kernels/simt/optimizers/update.h"
#include "kernels/simt/thread.h"
#include "kernels/step_numbers.h"

namespace plumb { inline namespace kernels { namespace simt {

/// Updates the elements by AdamW in one step (kernels/simt/optimizers/update.h). G is the format of the gradients. All
/// tensors: [elements]
template <class S, class G>
struct AdamWUpdate {
  S* weights;
  float* master;
  G* gradients;
  float* first_moment;
  float* second_moment;
  std::int64_t elements;
  AdamW optimizer;
  const StepNumbers* numbers;  ///< one element

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    update_elements(thread, *this, [&](std::int64_t i, float gradient, const StepNumbers& of_step) {
      const float m = optimizer.beta1 * first_moment[i] + (1.0F - optimizer.beta1) * gradient;
      const float v = optimizer.beta2 * second_moment[i] + (1.0F - optimizer.beta2) * gradient * gradient;
      first_moment[i] = m;
      second_moment[i] = v;
      const float step = m / of_step.first_correction / (sqrtf(v / of_step.second_correction) + optimizer.epsilon);
      return master[i] - optimizer.learning_rate * (step + optimizer.weight_decay * master[i]);
    });
  }
};

/// partial[p] = sum of squares of the p-th of `pieces` stretches of x. If an element is beyond `limit`, infinite or
/// NaN, the sum is not finite, which is how an overflow is found. One block takes a piece. x: [elements]; partial:
/// [pieces]
template <class S>
struct SumOfSquares {
  float* partial;
  const S* x;
  std::int64_t elements;
  std::int64_t pieces;
  float limit = INFINITY;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const std::int64_t each = (elements + pieces - 1) / pieces;
    for (std::int64_t piece = thread.block(); piece < pieces; piece += thread.blocks()) {
      const std::int64_t first = piece * each, left = elements - first;
      const float sum = sum_over_row(thread, left < each ? left : each, [&](std::int64_t i) {
        const float value = widened(x[first + i]);
        return fabsf(value) > limit ? INFINITY : value * value;
      });
      if (thread.lane() == 0) partial[piece] = sum;
    }
  }
};

/// Decides what the optimizer does with a step's gradients (executor/parameters/step_scale.h): fills in gradient_factor,
/// skips and square_sum of `numbers` from the partial sums of all gradients. One block runs it. clip_norm 0: not
/// clipped. partials: [count]
struct StepDecision {
  StepNumbers* numbers;
  const float* partials;
  std::int64_t count;
  float clip_norm;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const float sum = sum_over_row(thread, count, [&](std::int64_t i) { return partials[i]; });
    if (thread.block() > 0 || thread.lane() > 0) return;
    const bool overflows = !(sum < INFINITY);
    const float norm = sqrtf(sum) / numbers->loss_scale;
    const float clip = clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1.0F;
    numbers->gradient_factor = overflows ? 0.0F : clip / numbers->loss_scale;
    numbers->skips = overflows ? 1.0F : 0.0F;
    numbers->square_sum = sum;
  }
};

}}}  // namespace plumb::kernels::simt
