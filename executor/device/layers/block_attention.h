#pragma once
// A transformer block's attention on a device, in the three cases of executor/cpu/layers/block_attention.h: all tokens
// of a sequence are on the rank, they come in slices one after the other, or the ranks of a context group share them.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "executor/device/layers/attention_gradients.h"
#include "executor/device/layers/context_attention.h"
#include "executor/device/layers/device_layer.h"
#include "executor/device/layers/slice_attention.h"

namespace plumb { inline namespace executor {

class DeviceBlockAttention {
 public:
  /// `size` is that of the tokens on this rank. It places workspace behind the totals, and adds the bytes that
  /// sequences keep to `bytes`.
  DeviceBlockAttention(const AttentionSize& size, const DeviceTensorShare& share, std::int64_t element_bytes,
                       std::int64_t& forward_workspace, std::int64_t& backward_workspace, DeviceLayerBytes& bytes);

  /// `size` is the constructor's, with the micro-batch's dropout. qkv: [T, (a+2k)*d], which Ulysses replaces by the
  /// result of its all-to-all; output: [T, a*d]; log_sum_exp: [b, a, s]
  void forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output, float* log_sum_exp,
               std::byte* qkv) const;
  void backward(const DeviceLayerCall& call, const AttentionSize& size, const AttentionGradients& of) const;

 private:
  std::optional<DeviceContextAttention> context_;
  std::optional<DeviceSliceAttention> slices_;
};

}}  // namespace plumb::executor
