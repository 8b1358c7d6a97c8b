#pragma once
// The exchange of rows between the tokens of an expert group's ranks and their experts
// (executor/cpu/layers/expert_exchange.h). The blocks have room for whatever the router picks, so that no size depends
// on it (kernels/simt/experts/expert_blocks.h). In a group of one, rows stay where they are. Symbols: T tokens, k picks
// of a token, h hidden, E experts, n ranks, M rows of a block; R rows of the own experts at most: n M, or T k in a
// group of one.

#include "executor/device/layers/device_layer.h"

namespace plumb { inline namespace executor {

class DeviceExpertExchange {
 public:
  /// Places its tensors behind those that `bytes` counts, except the backward's workspace, which begins at `backward`
  /// bytes.
  DeviceExpertExchange(const TransformerLayer& layer, const LayerWork& work, const DeviceTensorShare& share,
                       std::int64_t element_bytes, DeviceLayerBytes& bytes, std::int64_t& backward);

  bool is_spread() const { return blocks_.ranks > 1; }
  std::int64_t rows() const { return is_spread() ? blocks_.all_rows() : tokens_ * picks_; }  // R

  /// Shares the routes after the router has run: places become places in blocks, and the own experts' rows get theirs.
  void share_routes(const DeviceLayerCall& call, const DeviceRoutes& routes) const;
  /// Returns the own experts' rows. `bounds` are those of a group of one.
  ExpertRows expert_rows(const DeviceLayerCall& call, const std::int32_t* bounds) const;

  /// Brings tokens' rows to the experts. by_expert: [R, h], rows: [T, h]
  void to_experts(const DeviceLayerCall& call, bool is_backward, void* by_expert, const void* rows,
                  const std::int32_t* places) const;
  /// experts_output() is where experts write their rows [R, h]. from_experts() replaces these by the rows that come
  /// back, in the order of the picks' places.
  std::byte* experts_output(const DeviceLayerCall& call, bool is_backward) const;
  void from_experts(const DeviceLayerCall& call, bool is_backward) const;

  /// send_weights() returns the routes that weigh_picks() uses for received rows (in a group of one, those of the
  /// picks). weight_gradients() is where it writes, in fp32; return_weight_gradients() brings the result back to the
  /// picks.
  DeviceRoutes send_weights(const DeviceLayerCall& call, const DeviceRoutes& routes) const;
  float* weight_gradients(const DeviceLayerCall& call, float* of_picks) const;
  void return_weight_gradients(const DeviceLayerCall& call, float* of_picks, const std::int32_t* places) const;

 private:
  CopyRowsSize copy_size() const { return {tokens_, picks_, hidden_}; }
  CopyRowsSize received_size() const { return {blocks_.all_rows(), 1, hidden_}; }

  std::int64_t tokens_, picks_, hidden_, element_bytes_;
  ExpertBlocks blocks_;
  // Tensors that are kept, in a group.
  DeviceTensor received_;  // [n, M] places of received rows
  DeviceTensor bounds_;    // [E/n + 1]
  // Tensors that live while a pass runs, by pass.
  DeviceTensor counts_;                  // [2, E]
  DeviceTensor rows_[2];                 // [R, h] rows of experts, those that are sent and those that come back
  DeviceTensor other_rows_[2];           // [n, M, h]
  DeviceTensor words_, received_words_;  // [n, M]
};

}}  // namespace plumb::executor
