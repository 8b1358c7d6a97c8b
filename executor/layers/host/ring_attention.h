#pragma once
// Attention in a context group whose keys and values go round a ring (Liu et al. 2023). Each of its ranks has some
// tokens of every sequence (executor/spec/division/context_division.h). Shapes: b sequences, S of their s tokens on this
// rank, a heads, k kv heads and d channels a head of this tensor rank.
//
// If sequences are cut into slices, s and S count the tokens of the slice, and its queries also see the slices before
// it. The keys and values of these, and the gradients that are still to be added to them, are kept in a SequenceSaved,
// which is null for whole sequences. The last slice's backward comes first.

#include "executor/layers/host/layer_call.h"

namespace plumb { inline namespace executor {

/// Returns the elements of context.scratch that the ring needs.
std::int64_t ring_attention_scratch_elements(const AttentionSize& size, std::int64_t sequence, const ContextSeat& seat);

/// Blocks of keys and values are passed round the group, and the next block travels while one is attended to. The
/// outputs for the blocks are merged by log-sum-exp. size.sequence is S. qkv: [b*S, (a+2k)*d]; output: [b*S, a*d];
/// log_sum_exp: [b, a, S]
void ring_attention_forward(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat,
                            SequenceSaved* sequence, float* output, float* log_sum_exp, const float* qkv);

/// Keys and values go round once more, and their gradients travel with them until they are back at their rank. dqkv:
/// [b*S, (a+2k)*d]
void ring_attention_backward(const CpuContext& context, const AttentionSize& size, const ContextSeat& seat,
                             SequenceSaved* sequence, float* dqkv, const float* doutput, const float* qkv,
                             const float* output, const float* log_sum_exp);

}}  // namespace plumb::executor
