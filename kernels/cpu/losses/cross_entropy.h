#pragma once
// Softmax cross-entropy, loss and gradient in one pass. KernelKind kCrossEntropy.

#include <cstdint>

namespace plumb { inline namespace kernels {

/// Returns the sum over the rows of -log softmax(logits[r])[targets[r]], added in double, in ascending r. Replaces the
/// logits by gradient_scale times their gradient: gradient_scale * (softmax - one_hot(target)).
/// The last `padding` columns are no tokens: they take no part, and their gradient is 0. A `softcap` above 0 bounds the
/// logits first (kernels/cpu/softcap.h).
/// logits: [rows, columns = V + padding]; targets: [rows], each in [0, V)
double cross_entropy(float* logits, const std::int32_t* targets, std::int64_t rows, std::int64_t columns,
                     float gradient_scale, std::int64_t padding = 0, float softcap = 0);

}}  // namespace plumb::kernels
