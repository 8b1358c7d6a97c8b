#pragma once
// Softmax cross-entropy on a GPU where each rank of a tensor group has the logits of some tokens
// (kernels/cpu/losses/vocab_parallel_cross_entropy.h).

#include "kernels/cpu/losses/vocab_parallel_cross_entropy.h"
#include "kernels/simt/number.h"
#include "kernels/simt/thread.h"

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
    for (std::int64_t row = thread.block(); row < part.rows; row += thread.blocks()) {
      const S* own = logits + row * part.columns;
      float largest = -INFINITY;
      for (std::int64_t c = thread.lane(); c < part.valid; c += thread.lanes())
        largest = Larger{}(largest, widened(own[c]));
      largest = combine_over_block(thread, largest, Larger{});
      const float sum =
          sum_over_row(thread, part.valid, [&](std::int64_t c) { return expf(widened(own[c]) - largest); });
      if (thread.lane() != 0) continue;
      parts[row] = largest;
      parts[part.rows + row] = sum;
      parts[2 * part.rows + row] = has_target(part, targets[row]) ? widened(own[targets[row] - part.first]) : 0.0F;
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
    const float scale = loss_scale == nullptr ? gradient_scale : gradient_scale * *loss_scale;
    for (std::int64_t row = thread.block(); row < part.rows; row += thread.blocks()) {
      float largest = -INFINITY, sum = 0, target_logit = 0;
      for (int rank = 0; rank < ranks; ++rank) largest = Larger{}(largest, parts_of(rank)[row]);
      for (int rank = 0; rank < ranks; ++rank) {
        const float* own = parts_of(rank) + row;
        sum += own[part.rows] * expf(own[0] - largest);
        target_logit += own[2 * part.rows];
      }
      if (thread.lane() == 0) losses[row] = largest + logf(sum) - target_logit;
      S* own = logits + row * part.columns;
      const std::int64_t target = has_target(part, targets[row]) ? targets[row] - part.first : -1;
      for (std::int64_t c = thread.lane(); c < part.columns; c += thread.lanes()) {
        const float probability = c < part.valid ? expf(widened(own[c]) - largest) / sum : 0.0F;
        store(own[c], scale * (probability - (c == target ? 1.0F : 0.0F)));
      }
    }
  }

 private:
  PLUMB_SIMT const float* parts_of(int rank) const { return all_parts + 3 * rank * part.rows; }
};

}}}  // namespace plumb::kernels::simt
