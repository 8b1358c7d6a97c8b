#pragma once
// A mixture of experts on a device, in a decoder block's place of the MLP (executor/cpu/layers/experts.cpp has what it
// computes). Rows of picks stand in the order of their experts; there is room for all R that there can be (T k, or in
// an expert group those of all its ranks: expert_exchange.h), so that nobody has to know on the host how many fell to
// whom, or were dropped. A tensor rank has f/t channels of each expert: it
// returns a part of the sum; the first alone adds what the router owes. Of slices each leaves its loads to the
// sequence: the next ones find what they have taken of an expert's capacity, and the load-balancing loss those of all.
// Symbols as in device_expert_kernels.h; f channels of an expert, u = 2f (gated) or f, F and U likewise of the shared
// one.

#include <optional>

#include "executor/device/layers/device_layer.h"
#include "executor/device/layers/expert_exchange.h"

namespace plumb { inline namespace executor {

class DeviceExperts {
 public:
  /// `layer` is a tensor rank's share. Takes its room behind what `bytes` counts.
  DeviceExperts(const TransformerLayer& layer, const LayerWork& work, const DeviceTensorShare& share,
                std::int64_t element_bytes, DeviceLayerBytes& bytes);

  /// output, input: [T, h]
  void forward(const DeviceLayerCall& call, void* output, const void* input) const;
  /// Makes the activations again.
  void activate(const DeviceLayerCall& call) const;
  /// dinput is written, and what weight_grad() needs. dinput, output_gradient: [T, h]
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
  /// The gradient of the router's scores, in the place of its probabilities, and its part of the input's.
  void router_input_grad(const DeviceLayerCall& call, void* dinput) const;
  void shared_input_grad(const DeviceLayerCall& call, void* dinput, const void* output_gradient) const;

  TransformerLayer layer_;
  TransformerLayer expert_;  // with the channels of one expert, and of the shared one, as its MLP's
  TransformerLayer shared_;
  std::int64_t tokens_;  // T
  std::int64_t element_bytes_;
  std::int64_t matrices_;  // that an expert's first product has
  PickRouting routing_;    // of the tokens here; its capacity is of whole sequences
  SharedPicks shared_picks_;
  std::int64_t whole_sequence_;  // s
  int slices_, slice_;           // of each sequence, and which of them this is
  std::int64_t loads_at_ = 0;    // [slices, b, E] of the slices' picks: bytes, in what the layer keeps of sequences
  std::int64_t router_ = -1, up_at_ = -1, down_at_ = -1, shared_up_at_ = -1, shared_down_at_ = -1;  // elements
  std::optional<DeviceExpertExchange> exchange_;
  // Kept.
  DeviceTensor probabilities_;     // [T, E], fp32; after the input gradient that of the scores
  DeviceTensor bounds_;            // [E + 1] of the rows that picks here have
  DeviceTensor picks_;             // [T, k]
  DeviceTensor weights_;           // [T, k], fp32
  DeviceTensor places_;            // [T, k]
  DeviceTensor loads_;             // [b, E]; of slices first those before, then, in the backward, all
  DeviceTensor input_;             // [R, h]
  DeviceTensor up_;                // [R, u]; after the input gradient its own
  DeviceTensor activated_;         // [R, f]
  DeviceTensor output_gradient_;   // [R, h], weighted; between the input and the weight gradient
  DeviceTensor shared_up_;         // [T, U]; likewise
  DeviceTensor shared_activated_;  // [T, F]
  // While a pass runs.
  DeviceTensor whole_picks_;         // of a context group (SharedPickRoom)
  DeviceTensor shared_output_;       // [T, h]
  DeviceTensor activated_gradient_;  // [R, f]
  DeviceTensor weight_gradients_;    // [T, k], fp32
  DeviceTensor added_;               // [b, E], fp32
  DeviceTensor part_;                // [T, h]
  DeviceTensor shared_gradient_;     // [T, F]
};

}}  // namespace plumb::executor
