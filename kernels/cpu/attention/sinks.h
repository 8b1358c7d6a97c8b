#pragma once
// Attention sinks: each head has a trained score that takes part in the softmax of every query and has no value (Xiao et
// al. 2023, 2309.17453; gpt-oss). A softmax with a sink is the one without, scaled, so these functions come behind the
// forward of any attention and in front of its backward.

#include "kernels/cpu/attention/attention.h"

namespace plumb { inline namespace kernels {

/// Scales the outputs and adds the sinks to log_sum_exp. sinks: [a]; output: [b*s, a*d]; log_sum_exp: [b, a, s]
void add_sinks(float* output, float* log_sum_exp, const float* sinks, const AttentionSize& size);

/// Adds the gradients of the sinks, each minus its probability times the product of output and gradient, summed over the
/// queries. dsinks, sinks: [a]; doutput, output: [b*s, a*d], log_sum_exp: [b, a, s], both with the sinks
void sinks_backward(float* dsinks, const float* doutput, const float* output, const float* log_sum_exp,
                    const float* sinks, const AttentionSize& size);

}}  // namespace plumb::kernels
