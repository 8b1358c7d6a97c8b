#pragma once
// Attention of a context group, whose ranks have some tokens of every sequence each
// (executor/division/context_division.h). Shapes: b sequences, S of their s tokens here, a heads, k kv heads and d
// channels a head of this tensor rank. Where sequences are cut into slices, s and S are those of the slice, whose
// queries see the slices before too: their keys and values, and what is owed to them, are kept in a SequenceSaved,
// otherwise null; the last slice's backward comes first.

#include "executor/cpu/layers/layer.h"

namespace plumb { inline namespace executor {

/// Elements of context.scratch that the ring needs.
std::int64_t ring_attention_scratch_elements(const AttentionSize& size, std::int64_t sequence, const ContextSeat& seat);

/// Keys and values go round, each block on its way while the one before is attended to; what a rank's queries see of a
/// block is merged by log-sum-exp. size.sequence is S. qkv: [b*S, (a+2k)*d], output: [b*S, a*d], log_sum_exp: [b, a, S]
void ring_attention_forward(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat,
                            SequenceSaved* sequence, float* output, float* log_sum_exp, const float* qkv);

/// Keys and values go round once more, and their gradients with them until they are back. dqkv: [b*S, (a+2k)*d]
void ring_attention_backward(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat,
                             SequenceSaved* sequence, float* dqkv, const float* doutput, const float* qkv,
                             const float* output, const float* log_sum_exp);

/// Ulysses. size is that of the rank's own tokens: of whole sequences it has a/n heads. Returns qkv as the all-to-all
/// has made it, [b*s, (a+2k)/n*d], for the backward; log_sum_exp: [b, a/n, s]; output: [b*S, a*d]
Tensor ulysses_attention_forward(const CpuContext& context, const AttentionSize& size, SequenceSaved* sequence,
                                 float* output, float* log_sum_exp, const float* qkv);

/// exchanged_qkv: [b*s, (a+2k)/n*d]; the output is exchanged again. dqkv: [b*S, (a+2k)*d]
void ulysses_attention_backward(const CpuContext& context, const AttentionSize& size, SequenceSaved* sequence,
                                float* dqkv, const float* doutput, const float* exchanged_qkv, const float* output,
                                const float* log_sum_exp);

}}  // namespace plumb::executor
