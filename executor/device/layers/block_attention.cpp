#include "executor/device/layers/block_attention.h"

namespace plumb { inline namespace executor {

DeviceBlockAttention::DeviceBlockAttention(const AttentionSize& size, const DeviceTensorShare& share,
                                           std::int64_t element_bytes, std::int64_t& forward_workspace,
                                           std::int64_t& backward_workspace, DeviceLayerBytes& bytes) {
  if (share.context.ranks > 1)
    context_.emplace(size, share, element_bytes, forward_workspace, backward_workspace, bytes);
  else if (share.is_sliced())
    slices_.emplace(size, share.sequence, share.slice, element_bytes, bytes);
}

void DeviceBlockAttention::forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output,
                                   float* log_sum_exp, std::byte* qkv) const {
  if (context_) return context_->forward(call, size, output, log_sum_exp, qkv);
  if (slices_) return slices_->forward(call, size, output, log_sum_exp, qkv);
  call.kernels.attention_forward(output, log_sum_exp, qkv, size, call.numbers);
}

void DeviceBlockAttention::backward(const DeviceLayerCall& call, const AttentionSize& size,
                                    const AttentionGradients& of) const {
  if (context_) return context_->backward(call, size, of);
  if (slices_) return slices_->backward(call, size, of);
  call.kernels.attention_backward(of.dqkv, of.products, of.doutput, of.qkv, of.output, of.log_sum_exp, size,
                                  call.numbers);
}

}}  // namespace plumb::executor
