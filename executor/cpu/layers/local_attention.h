#pragma once
// Attention among tokens that are all on this rank: of whole sequences, or of a slice of them, whose queries also see
// the keys and values that the slices before left (Seq1F1B: Sun et al. 2024).

#include "executor/cpu/layers/layer.h"

namespace plumb { inline namespace executor {

/// qkv: [b*s, (a+2k)*d], output: [b*s, a*d], log_sum_exp: [b, a, s], s = size.sequence tokens of each sequence, or of a
/// slice of it where there is a `sequence`. Scratch: attention_scratch_elements() of whole sequences.
void local_attention_forward(const CpuContext& context, const AttentionSize& size, SequenceSaved* sequence,
                             float* output, float* log_sum_exp, const float* qkv);

/// The last slice comes first: when a slice's turn comes, those behind it have added what they owe to its keys and
/// values. dqkv: [b*s, (a+2k)*d]
void local_attention_backward(const CpuContext& context, const AttentionSize& size, SequenceSaved* sequence,
                              float* dqkv, const float* doutput, const float* qkv, const float* output,
                              const float* log_sum_exp);

}}  // namespace plumb::executor
