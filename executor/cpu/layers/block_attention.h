#pragma once
// A transformer block's attention, for tokens that are all on this rank, that come in slices, or that are on the ranks
// of a context group. T tokens on this rank, a heads, k kv heads and d channels a head of this tensor rank.

#include "executor/cpu/layers/layer.h"

namespace plumb { inline namespace executor {

/// Returns the elements of context.scratch that both functions need. `sequence`: tokens of a whole sequence.
std::int64_t attend_scratch_elements(const TransformerLayer& layer, const LayerWork& work, std::int64_t sequence,
                                     const ContextSeat& seat);

/// Computes the output and the log-sum-exp of the scores. qkv: [T, (a+2k)*d], under Ulysses replaced by the result of
/// its all-to-all; output: [T, a*d]; log_sum_exp: [T*a]
void attend(const TransformerLayer& layer, const LayerCall& call, const ContextSeat& seat, float* output,
            float* log_sum_exp, Tensor& qkv);

/// Computes dqkv, [T, (a+2k)*d]. The last slice must come first: when a slice's turn comes, the slices behind it have
/// added the gradients of its keys and values.
void attend_backward(const TransformerLayer& layer, const LayerCall& call, const ContextSeat& seat, float* dqkv,
                     const float* doutput, const float* output, const float* log_sum_exp, const Tensor& qkv);

}}  // namespace plumb::executor
