#pragma once
// Softmax cross-entropy on a GPU where each rank of a tensor group has the logits of some tokens
// (kernels/cpu/losses/vocab_parallel_cross_entropy.h).

#include "kernels/simt/losses/softmax_row.h"

namespace plumb { inline namespace kernels { namespace simt {

PLUMB_SIMT bool has_target(const VocabPart& part, std::int64_t target) {
  return target >= part.first && target < part.first + part.valid;
}

/// Writes for each row the largest logit, the sum of exp(logit - largest), and the target's logit if this rank has it,
/// otherwise 0. One block computes a row. parts: [3, rows]; logits: [rows, columns]; targets: [rows]
template <class S>
struct CrossEntropyParts {
  float* parts;
  const S* logits;
  const std::int32_t* targets;
  VocabPart part;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const bool wide = is_wide<S>(part.columns, logits);
    for (std::int64_t row = thread.block(); row < part.rows; row += thread.blocks()) {
      const S* own = logits + row * part.columns;
      const SoftmaxRow softmax = softmax_of_row(thread, own, part, wide);
      if (thread.lane() != 0) continue;
      parts[row] = softmax.largest;
      parts[part.rows + row] = softmax.sum;
      parts[2 * part.rows + row] =
          has_target(part, targets[row]) ? softcapped(widened(own[targets[row] - part.first]), part.softcap) : 0.0F;
    }
  }
};

/// Writes the losses of all rows and replaces the logits by their gradient, as CrossEntropy does; it is 0 in the
/// padding. One block computes a row. all_parts: [ranks, 3, rows]; losses: [rows]
template <class S>
struct CrossEntropyFromParts {
  float* losses;
  S* logits;
  const float* all_parts;
  int ranks;
  const std::int32_t* targets;
  VocabPart part;
  float gradient_scale;
  const float* loss_scale = nullptr;

  template <class Thread>
  PLUMB_SIMT void operator()(const Thread& thread) const {
    const bool wide = is_wide<S>(part.columns, logits);
    const float scale = loss_scale == nullptr ? gradient_scale : gradient_scale * *loss_scale;
    for (std::int64_t row = thread.block(); row < part.rows; row += thread.blocks()) {
      SoftmaxRow whole{-INFINITY, 0};
      float target_logit = 0;
      for (int rank = 0; rank < ranks; ++rank) whole.largest = Larger{}(whole.largest, parts_of(rank)[row]);
      for (int rank = 0; rank < ranks; ++rank) {
        const float* of_rank = parts_of(rank) + row;
        whole.sum += of_rank[part.rows] * expf(of_rank[0] - whole.largest);
        target_logit += of_rank[2 * part.rows];
      }
      if (thread.lane() == 0) losses[row] = whole.largest + logf(whole.sum) - target_logit;
      const std::int64_t target = has_target(part, targets[row]) ? targets[row] - part.first : -1;
      replace_by_gradient(thread, logits + row * part.columns, part, wide, whole, target, scale);
    }
  }

 private:
  PLUMB_SIMT const float* parts_of(int rank) const { return all_parts + 3 * rank * part.rows; }
};

}}}  // namespace plumb::kernels::simt
