#pragma once
// Softmax cross-entropy on a GPU, loss and gradient in one pass over each row in place
// (kernels/cpu/losses/cross_entropy.h).

#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

namespace plumb { inline namespace kernels { namespace simt {

/// losses[r] = -log softmax(logits[r])[targets[r]]; logits := gradient_scale * loss_scale * (softmax -
/// one_hot(target)). A null loss scale counts as 1. One block computes a row. logits: [rows, columns]; targets: [rows],
/// each in [0, columns); losses: [rows]
template <class S>
struct CrossEntropy {
  float* losses;
  S* logits;
  const std::int32_t* targets;
  std::int64_t rows;
  std::int64_t columns;
  float gradient_scale;
  const float* loss_scale = nullptr;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t row = thread.block(); row < rows; row += thread.blocks()) {
      S* own = logits + row * columns;
      float largest = -INFINITY;
      for (std::int64_t c = thread.lane(); c < columns; c += thread.lanes())
        largest = Larger{}(largest, widened(own[c]));
      largest = combine_over_block(thread, largest, Larger{});
      const float sum = sum_over_row(thread, columns, [&](std::int64_t c) { return expf(widened(own[c]) - largest); });
      const std::int64_t target = targets[row];
      const float scale = loss_scale == nullptr ? gradient_scale : gradient_scale * *loss_scale;
      if (thread.lane() == 0) losses[row] = largest + logf(sum) - widened(own[target]);
      thread.sync();  // before the target's logit is replaced
      for (std::int64_t c = thread.lane(); c < columns; c += thread.lanes()) {
        const float probability = expf(widened(own[c]) - largest) / sum;
        store(own[c], scale * (probability - (c == target ? 1.0F : 0.0F)));
      }
    }
  }
};

}}}  // namespace plumb::kernels::simt
