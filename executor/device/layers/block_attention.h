#pragma once
// A transformer block's attention on a device, wherever the tokens of its sequences are
// (executor/cpu/layers/block_attention.h): all here, in slices one after the other, or on the ranks of a context group.

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
  /// size: of the tokens here. Takes workspace behind what is counted in the totals, and counts what sequences keep in
  /// `bytes`.
  DeviceBlockAttention(const AttentionSize& size, const DeviceTensorShare& share, std::int64_t element_bytes,
                       std::int64_t& forward_workspace, std::int64_t& backward_workspace, DeviceLayerBytes& bytes);

  /// size: the same, with the micro-batch's dropout. qkv: [T, (a+2k)*d], with Ulysses replaced by what its all-to-all
  /// makes of it; output: [T, a*d]; log_sum_exp: [b, a, s]
  void forward(const DeviceLayerCall& call, const AttentionSize& size, std::byte* output, float* log_sum_exp,
               std::byte* qkv) const;
  void backward(const DeviceLayerCall& call, const AttentionSize& size, const AttentionGradients& of) const;

 private:
  std::optional<DeviceContextAttention> context_;
  std::optional<DeviceSliceAttention> slices_;
};

}}  // namespace plumb::executor
