#pragma once
// Attention among tokens that are all on this rank. They are whole sequences, or a slice of them, whose queries also
// see the keys and values of the slices before (Seq1F1B: Sun et al. 2024).

#include "executor/layers/host/layer_call.h"

namespace plumb { inline namespace executor {

/// Computes the output and the log-sum-exp of the scores. qkv: [b*s, (a+2k)*d]; output: [b*s, a*d]; log_sum_exp: [b, a,
/// s]. s = size.sequence counts the tokens of each sequence, or of a slice of it where `sequence` is given. Scratch:
/// attention_scratch_elements() of whole sequences.
void local_attention_forward(const CpuContext& context, const AttentionSize& size, SequenceSaved* sequence,
                             float* output, float* log_sum_exp, const float* qkv);

/// Computes dqkv, [b*s, (a+2k)*d]. The last slice must come first: when a slice's turn comes, the slices behind it have
/// added the gradients of its keys and values.
void local_attention_backward(const CpuContext& context, const AttentionSize& size, SequenceSaved* sequence,
                              float* dqkv, const float* doutput, const float* qkv, const float* output,
                              const float* log_sum_exp);

}}  // namespace plumb::executor
