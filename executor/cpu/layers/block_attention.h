#pragma once
// A transformer block's attention, wherever the tokens of its sequences are: all here, in slices one after the other,
// or on the ranks of a context group. T tokens here of a heads, k kv heads and d channels a head of this tensor rank.

#include "executor/cpu/layers/layer.h"

namespace plumb { inline namespace executor {

/// A block's dropouts, by which their masks differ.
enum BlockDropout : std::uint64_t { kProbabilities, kAttentionBranch, kFeedForwardBranch };

/// Elements of context.scratch that both functions need. `sequence`: tokens of a whole sequence.
std::int64_t attend_scratch_elements(const TransformerLayer& layer, const LayerWork& work, std::int64_t sequence,
                                     const ContextSeat& seat);

/// qkv: [T, (a+2k)*d], under Ulysses replaced by what its all-to-all makes of it; output: [T, a*d]; log_sum_exp: [T*a]
void attend(const TransformerLayer& layer, const LayerCall& call, const ContextSeat& seat, float* output,
            float* log_sum_exp, Tensor& qkv);

/// The last slice comes first: when a slice's turn comes, those behind it have added what they owe to its keys and
/// values. dqkv: [T, (a+2k)*d]
void attend_backward(const TransformerLayer& layer, const LayerCall& call, const ContextSeat& seat, float* dqkv,
                     const float* doutput, const float* output, const float* log_sum_exp, const Tensor& qkv);

}}  // namespace plumb::executor
