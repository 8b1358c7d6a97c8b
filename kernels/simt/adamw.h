#pragma once
// AdamW on a GPU (kernels/cpu/adamw.h has the formula) with fp32 master weights, and the sum that clipping and loss
// scaling need.

#include "kernels/optimizer.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb::simt {

/// Updates the master weights and moments, writes the weights that compute, zeroes the gradients. `gradient_scale`
/// undoes the loss scale and clips. weights may be master itself. All: [elements]; G is how gradients are stored.
template <class S, class G>
struct AdamWUpdate {
  S* weights;
  float* master;
  G* gradients;
  float* first_moment;
  float* second_moment;
  std::int64_t elements;
  AdamW optimizer;
  float first_correction;   ///< 1 - beta1^t
  float second_correction;  ///< 1 - beta2^t
  float gradient_scale;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for_each_element(thread, elements, [&](std::int64_t i) {
      const float gradient = gradient_scale * widened(gradients[i]);
      const float m = optimizer.beta1 * first_moment[i] + (1.0F - optimizer.beta1) * gradient;
      const float v = optimizer.beta2 * second_moment[i] + (1.0F - optimizer.beta2) * gradient * gradient;
      first_moment[i] = m;
      second_moment[i] = v;
      const float step = m / first_correction / (sqrtf(v / second_correction) + optimizer.epsilon);
      const float updated = master[i] - optimizer.learning_rate * (step + optimizer.weight_decay * master[i]);
      master[i] = updated;
      store(weights[i], updated);
      store(gradients[i], 0.0F);
    });
  }
};

/// partial[block] = sum of squares of the elements that fall to the block; with infinities and NaNs it is none of the
/// finite numbers, which is how an overflow is found. x: [elements]; partial: [blocks]
template <class S>
struct SumOfSquares {
  float* partial;
  const S* x;
  std::int64_t elements;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    float own = 0;
    for_each_element(thread, elements, [&](std::int64_t i) { own += widened(x[i]) * widened(x[i]); });
    const float sum = combine_over_block(thread, own, Add{});
    if (thread.lane() == 0) partial[thread.block()] = sum;
  }
};

}  // namespace plumb::simt
