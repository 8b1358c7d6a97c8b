// Kernels of attention, also of a context group and of slices, recorded.

#include "executor/program/calls/recorded_calls.h"

namespace plumb { inline namespace executor {

void CallRecorder::split_heads(void* blocks, const void* rows, const HeadShares& size) {
  add([=](DeviceKernels& kernels) { kernels.split_heads(blocks, rows, size); });
}

void CallRecorder::join_heads(void* rows, const void* blocks, const HeadShares& size) {
  add([=](DeviceKernels& kernels) { kernels.join_heads(rows, blocks, size); });
}

void CallRecorder::transpose_blocks(void* to, const void* from, const BlockMatrix& size) {
  add([=](DeviceKernels& kernels) { kernels.transpose_blocks(to, from, size); });
}

void CallRecorder::narrow_columns(void* to, std::int64_t to_width, const float* from, const NormSize& size) {
  add([=](DeviceKernels& kernels) { kernels.narrow_columns(to, to_width, from, size); });
}

void CallRecorder::join_latent_heads(void* qkv, const void* queries, const void* shared, const void* keys_values,
                                     const LatentHeads& size) {
  add([=](DeviceKernels& kernels) { kernels.join_latent_heads(qkv, queries, shared, keys_values, size); });
}

void CallRecorder::split_latent_heads(void* dqueries, void* dshared, void* dkeys_values, const void* dqkv,
                                      const LatentHeads& size) {
  add([=](DeviceKernels& kernels) { kernels.split_latent_heads(dqueries, dshared, dkeys_values, dqkv, size); });
}

void CallRecorder::attention_forward(void* output, float* sums, float* log_sum_exp, const AttentionOperands& of) {
  add([=](DeviceKernels& kernels) { kernels.attention_forward(output, sums, log_sum_exp, of); });
}

void CallRecorder::attention_backward(void* dqkv, float* gradients, float* sums, float* products, const void* doutput,
                                      const void* output, const float* log_sum_exp, const AttentionOperands& of) {
  add([=](DeviceKernels& kernels) {
    kernels.attention_backward(dqkv, gradients, sums, products, doutput, output, log_sum_exp, of);
  });
}

}}  // namespace plumb::executor
