#pragma once
// A mixture of experts on a device, in the place of a decoder block's MLP (executor/cpu/layers/experts.cpp says what it
// computes). Rows of picks are ordered by their experts. There is room for the most rows, R, that there can be (T k, or
// in an expert group those of all its ranks: expert_exchange.h), so the host need not know how many picks an expert
// gets, or how many were dropped. A tensor rank has f/t channels of each expert and returns a part of the sum; only the
// first rank adds the router's part of the input's gradient. Each slice keeps its loads with the sequence: later slices
// find there how much of an expert's capacity is taken, and the load-balancing loss sums up all of them. Symbols are
// those of device_expert_kernels.h; f channels of an expert, u = 2f (gated) or f; F and U are those of the shared
// expert.

#include <optional>

#include "executor/device/layers/device_layer.h"
#include "executor/device/layers/expert_exchange.h"

namespace plumb { inline namespace executor {

class DeviceExperts {
 public:
  /// `layer` is a tensor rank's share. It places its tensors behind those that `bytes` counts.
  DeviceExperts(const TransformerLayer& layer, const LayerWork& work, const DeviceTensorShare& share,
                std::int64_t element_bytes, DeviceLayerBytes& bytes);

  /// Computes the output, without the residual. output, input: [T, h]
  void forward(const DeviceLayerCall& call, void* output, const void* input) const;
  /// Computes the activations again.
  void activate(const DeviceLayerCall& call) const;
  /// Writes dinput, and the tensors that weight_grad() needs. dinput, output_gradient: [T, h]
  void input_grad(const DeviceLayerCall& call, void* dinput, const void* output_gradient) const;
  void weight_grad(const DeviceLayerCall& call, const void* output_gradient, const void* input) const;

 private:
  std::int64_t picked() const { return tokens_ * layer_.experts_per_token; }  // T k
  std::int64_t rows() const { return exchange_->rows(); }                     // R
  std::int64_t width() const { return matrices_ * layer_.expert_ffn; }        // u
  std::int64_t shared_width() const { return matrices_ * layer_.shared_ffn; }
  std::int64_t lists() const { return routing_.sequences * routing_.experts; }  // b E
  bool is_sliced() const { return slices_ > 1; }
  std::int32_t* slice_loads(const DeviceLayerCall& call, int slice) const;
  DeviceRoutes routes(const DeviceLayerCall& call) const;
  void route(const DeviceLayerCall& call) const;
  ExpertRows expert_rows(const DeviceLayerCall& call) const;
  CopyRowsSize copy_size() const { return {tokens_, layer_.experts_per_token, layer_.hidden}; }
  RouterProduct router_product() const { return {tokens_, layer_.experts, layer_.hidden}; }
  const std::byte* weight(const DeviceLayerCall& call, std::int64_t at) const {
    return call.weights + at * element_bytes_;
  }
  const std::byte* expert_weight(const DeviceLayerCall& call, std::int64_t at) const {
    return call.expert_weights + at * element_bytes_;
  }
  /// Replaces the router's probabilities by the gradient of its scores, and adds its part to the input's gradient.
  void router_input_grad(const DeviceLayerCall& call, void* dinput) const;
  void shared_input_grad(const DeviceLayerCall& call, void* dinput, const void* output_gradient) const;

  TransformerLayer layer_;
  TransformerLayer expert_;  // expert_ and shared_ have one expert's, or the shared expert's, channels in their MLP
  TransformerLayer shared_;
  std::int64_t tokens_;  // T
  std::int64_t element_bytes_;
  std::int64_t matrices_;  // matrices in an expert's first product
  PickRouting routing_;    // for the tokens on this rank; the capacity is that of whole sequences
  SharedPicks shared_picks_;
  std::int64_t whole_sequence_;  // s
  int slices_, slice_;           // slices of each sequence, and the number of this one
  // [slices, b, E] the slices' picks: offset in bytes among what the layer keeps of sequences.
  std::int64_t loads_at_ = 0;
  std::int64_t router_ = -1, up_at_ = -1, down_at_ = -1, shared_up_at_ = -1, shared_down_at_ = -1;  // elements
  std::optional<DeviceExpertExchange> exchange_;
  // Tensors that are kept.
  DeviceTensor probabilities_;     // [T, E], fp32; after the input gradient the scores' gradient
  DeviceTensor bounds_;            // [E + 1] bounds of the rows of this rank's picks
  DeviceTensor picks_;             // [T, k]
  DeviceTensor weights_;           // [T, k], fp32
  DeviceTensor places_;            // [T, k]
  DeviceTensor loads_;             // [b, E]; with slices first the earlier ones' loads, then, in the backward, all
  DeviceTensor input_;             // [R, h]
  DeviceTensor up_;                // [R, u]; after the input gradient its gradient
  DeviceTensor activated_;         // [R, f]
  DeviceTensor output_gradient_;   // [R, h], weighted; from the input gradient to the weight gradient
  DeviceTensor shared_up_;         // [T, U]; after the input gradient its gradient
  DeviceTensor shared_activated_;  // [T, F]
  // Tensors that live while a pass runs.
  DeviceTensor whole_picks_;         // picks of a context group (SharedPickRoom)
  DeviceTensor shared_output_;       // [T, h]
  DeviceTensor activated_gradient_;  // [R, f]
  DeviceTensor weight_gradients_;    // [T, k], fp32
  DeviceTensor added_;               // [b, E], fp32
  DeviceTensor part_;                // [T, h]
  DeviceTensor shared_gradient_;     // [T, F]
};

}}  // namespace plumb::executor
