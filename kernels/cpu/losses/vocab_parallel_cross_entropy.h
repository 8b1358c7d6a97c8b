#pragma once
// Softmax cross-entropy where each rank of a tensor group has the logits of some tokens of the vocabulary (Shoeybi et
// al. 2019). Each rank sums up its part of every row, the ranks exchange these sums, and each ends with its part of the
// gradient and the whole loss.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// One rank's columns: tokens [first, first + valid) of the vocabulary. The columns from `valid` on are padding, which
/// takes no part.
struct VocabPart {
  std::int64_t rows = 0;     ///< T
  std::int64_t columns = 0;  ///< columns of the logits, padding included
  std::int64_t first = 0;
  std::int64_t valid = 0;  ///< may be 0
  float softcap = 0;       ///< bound of the logits (kernels/cpu/softcap.h); 0: none
};

/// Writes for each row the largest logit (-infinity without columns), the sum of exp(logit - largest), and the target's
/// logit if this rank has it, otherwise 0. Bounds the logits first where the part has a softcap. logits: [T, columns];
/// targets: [T]; parts: [3, T]
void cross_entropy_parts(float* parts, float* logits, const std::int32_t* targets, const VocabPart& part);

/// Returns the loss summed over the rows, as cross_entropy() does. Replaces the logits, which the parts have bounded, by gradient_scale times their
/// gradient, which is 0 in the padding. all_parts: [ranks, 3, T] in the order of the ranks, so that all ranks return
/// the same.
double cross_entropy_from_parts(float* logits, const float* all_parts, int ranks, const std::int32_t* targets,
                                const VocabPart& part, float gradient_scale);

}}  // namespace plumb::kernels
