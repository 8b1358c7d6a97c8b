#pragma once
// Softmax cross-entropy on a GPU, loss and gradient in place (kernels/cpu/losses/cross_entropy.h).

#include "kernels/simt/losses/softmax_row.h"

namespace plumb { inline namespace kernels { namespace simt {

/// losses[r] = -log softmax(logits[r])[targets[r]]; logits := gradient_scale * loss_scale * (softmax -
/// one_hot(target)), and 0 in the padding. A null loss scale counts as 1. One block computes a row. The part is the
/// whole vocabulary. logits: [rows, columns]; targets: [rows], each in [0, valid); losses: [rows]
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
    const bool wide = is_wide<S>(part.columns, logits);
    const float scale = loss_scale == nullptr ? gradient_scale : gradient_scale * *loss_scale;
    for (std::int64_t row = thread.block(); row < part.rows; row += thread.blocks()) {
      S* own = logits + row * part.columns;
      const SoftmaxRow softmax = softmax_of_row(thread, own, part, wide);
      const std::int64_t target = targets[row];
      if (thread.lane() == 0)
        losses[row] = softmax.largest + logf(softmax.sum) - softcapped(widened(own[target]), part.softcap);
      thread.sync();  // before the target's logit is replaced
      replace_by_gradient(thread, own, part, wide, softmax, target, scale);
    }
  }
};

}}}  // namespace plumb::kernels::simt
