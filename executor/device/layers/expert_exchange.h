#pragma once
// Rows between the tokens of an expert group's ranks and their experts (executor/cpu/layers/expert_exchange.h): in blocks that
// have room for whatever the router picks, so that no size depends on it (kernels/simt/experts/expert_blocks.h). In a group of
// one, rows stay where they are. Symbols: T tokens, k picks of a token, h hidden, E experts, n ranks, M rows of a
// block; R rows of the own experts at most: n M, or T k in a group of one.

#include "executor/device/layers/device_layer.h"

namespace plumb { inline namespace executor {

class DeviceExpertExchange {
 public:
  /// Takes its room behind what `bytes` counts, of the backward's workspace behind `backward` bytes.
  DeviceExpertExchange(const TransformerLayer& layer, const LayerWork& work, const DeviceTensorShare& share,
                       std::int64_t element_bytes, DeviceLayerBytes& bytes, std::int64_t& backward);

  bool is_spread() const { return blocks_.ranks > 1; }
  std::int64_t rows() const { return is_spread() ? blocks_.all_rows() : tokens_ * picks_; }  // R

  /// Behind the router: places become those in blocks, and the own experts' rows find theirs.
  void share_routes(const DeviceLayerCall& call, const DeviceRoutes& routes) const;
  /// bounds: of a group of one.
  ExpertRows expert_rows(const DeviceLayerCall& call, const std::int32_t* bounds) const;

  /// by_expert: [R, h], rows: [T, h]
  void to_experts(const DeviceLayerCall& call, bool is_backward, void* by_expert, const void* rows,
                  const std::int32_t* places) const;
  /// Where experts leave their rows [R, h] before from_experts(); as these come back, by the places of picks.
  std::byte* experts_output(const DeviceLayerCall& call, bool is_backward) const;
  void from_experts(const DeviceLayerCall& call, bool is_backward) const;

  /// What weigh_picks() goes by, of rows as they came: in a group of one of picks. And what it writes, in fp32.
  DeviceRoutes send_weights(const DeviceLayerCall& call, const DeviceRoutes& routes) const;
  float* weight_gradients(const DeviceLayerCall& call, float* of_picks) const;
  void return_weight_gradients(const DeviceLayerCall& call, float* of_picks, const std::int32_t* places) const;

 private:
  CopyRowsSize copy_size() const { return {tokens_, picks_, hidden_}; }
  CopyRowsSize received_size() const { return {blocks_.all_rows(), 1, hidden_}; }

  std::int64_t tokens_, picks_, hidden_, element_bytes_;
  ExpertBlocks blocks_;
  // Kept, of a group.
  DeviceTensor received_;  // [n, M] places of received rows
  DeviceTensor bounds_;    // [E/n + 1]
  // While a pass runs, by pass.
  DeviceTensor counts_;                  // [2, E]
  DeviceTensor rows_[2];                 // [R, h] of experts; sent and returned
  DeviceTensor other_rows_[2];           // [n, M, h]
  DeviceTensor words_, received_words_;  // [n, M]
};

}}  // namespace plumb::executor
