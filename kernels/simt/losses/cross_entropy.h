#pragma once
// Softmax cross-entropy on a GPU, loss and gradient in one pass over each row in place
// (kernels/cpu/losses/cross_entropy.h).

#include "kernels/cpu/losses/vocab_parallel_cross_entropy.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"
#include "kernels/simt/wide.h"

namespace plumb { inline namespace kernels { namespace simt {

/// losses[r] = -log softmax(logits[r])[targets[r]]; logits := gradient_scale * loss_scale * (softmax -
/// one_hot(target)), and 0 in the padding. A null loss scale counts as 1. One block computes a row. The part is the whole
/// vocabulary. logits: [rows, columns]; targets: [rows], each in [0, valid); losses: [rows]
template <class S>
struct CrossEntropy {
  float* losses;
  S* logits;
  const std::int32_t* targets;
  VocabPart part;
  float gradient_scale;
  const float* loss_scale = nullptr;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    for (std::int64_t row = thread.block(); row < part.rows; row += thread.blocks()) {
      S* own = logits + row * part.columns;
      const bool wide = is_wide<S>(part.columns, logits);
      // Each lane sums up beside the largest logit that it has seen so far.
      float own_largest = -INFINITY, own_sum = 0;
      for_each_of_row<S>(thread, part.columns, wide, [&]<int N>(std::int64_t c) {
        float values[N];
        load_all(values, own + c);
        float larger = own_largest;
        for (int j = 0; j < N; ++j) {
          if (c + j >= part.valid) values[j] = -INFINITY;
          larger = Larger{}(larger, values[j]);
        }
        if (larger > own_largest) own_sum *= expf(own_largest - larger);
        own_largest = larger;
        for (const float value : values)
          if (value > -INFINITY) own_sum += expf(value - larger);
      });
      const float largest = combine_over_block(thread, own_largest, Larger{});
      const float sum = combine_over_block(thread, own_sum > 0 ? own_sum * expf(own_largest - largest) : 0.0F, Add{});
      const std::int64_t target = targets[row];
      const float scale = loss_scale == nullptr ? gradient_scale : gradient_scale * *loss_scale;
      if (thread.lane() == 0) losses[row] = largest + logf(sum) - widened(own[target]);
      thread.sync();  // before the target's logit is replaced
      for_each_of_row<S>(thread, part.columns, wide, [&]<int N>(std::int64_t c) {
        float values[N];
        load_all(values, own + c);
        for (int j = 0; j < N; ++j) {
          const float probability = c + j < part.valid ? expf(values[j] - largest) / sum : 0.0F;
          values[j] = scale * (probability - (c + j == target ? 1.0F : 0.0F));
        }
        store_all(own + c, values);
      });
    }
  }
};

}}}  // namespace plumb::kernels::simt
