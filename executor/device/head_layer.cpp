// Final norm, projection and cross-entropy on a device. Symbols as in kernels/layer.h.

#include "executor/device/device_layer.h"
#include "executor/device/device_norm.h"

namespace plumb {
namespace {

class DeviceHead : public DeviceLayer {
 public:
  DeviceHead(const HeadLayer& layer, const LayerWork& work, std::int64_t element_bytes)
      : layer_(layer),
        rows_(tokens_of(work)),
        projection_(parameter_offset(layer, "projection.weight")),
        projection_bytes_(projection_ * element_bytes),
        norm_(place_norm(layer, "norm", layer.norm, rows_, bytes_)) {
    const std::int64_t hidden = rows_ * layer.hidden * element_bytes;
    input_ = place_tensor(DevicePlace::kEarly, bytes_.early, hidden);
    norm_output_ = place_tensor(DevicePlace::kCheap, bytes_.cheap, hidden);
    logits_ = place_tensor(DevicePlace::kLate, bytes_.late, rows_ * layer.vocab * element_bytes);
    norm_gradient_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, hidden);
  }

  DeviceLayerBytes bytes() const override { return bytes_; }
  DeviceTensor input() const override { return input_; }
  DeviceTensor output_gradient() const override { return {}; }

  void forward(const DeviceLayerCall& call, void*) const override {
    const std::int64_t h = layer_.hidden;
    rebuild_cheap(call);
    call.kernels.linear_forward(address_of(call, logits_), address_of(call, norm_output_),
                                call.weights + projection_bytes_, {rows_, layer_.vocab, h});
    call.kernels.cross_entropy(call.losses, address_of(call, logits_), call.targets, rows_, layer_.vocab,
                               call.gradient_scale, call.loss_scale);
  }

  void rebuild_cheap(const DeviceLayerCall& call) const override {
    call.kernels.norm_forward(address_of(call, norm_output_), nullptr, address_of(call, input_), nullptr,
                              norm_in(call, norm_), {rows_, layer_.hidden}, static_cast<float>(layer_.norm_epsilon));
  }

  void input_grad(const DeviceLayerCall& call, void* input_gradient) const override {
    const std::int64_t h = layer_.hidden;
    call.kernels.linear_input_grad(address_of(call, norm_gradient_), address_of(call, logits_),
                                   call.weights + projection_bytes_, {rows_, h, layer_.vocab});
    call.kernels.norm_backward(input_gradient, call.gradients + norm_.gain, at_offset(call.gradients, norm_.bias),
                               address_of(call, norm_gradient_), nullptr, address_of(call, input_),
                               norm_in(call, norm_), {rows_, h});
  }

  void weight_grad(const DeviceLayerCall& call) const override {
    call.kernels.linear_weight_grad(call.gradients + projection_, address_of(call, logits_),
                                    address_of(call, norm_output_), {layer_.vocab, layer_.hidden, rows_});
  }

 private:
  HeadLayer layer_;
  std::int64_t rows_;  // T
  std::int64_t projection_, projection_bytes_;
  DeviceLayerBytes bytes_;
  DeviceLayerNorm norm_;
  DeviceTensor input_;          // [T, h]
  DeviceTensor norm_output_;    // [T, h]
  DeviceTensor logits_;         // [T, V]; from the forward on their gradient
  DeviceTensor norm_gradient_;  // [T, h]
};

}  // namespace

std::unique_ptr<DeviceLayer> make_device_head(const HeadLayer& layer, const LayerWork& work,
                                              std::int64_t element_bytes) {
  return std::make_unique<DeviceHead>(layer, work, element_bytes);
}

}  // namespace plumb
