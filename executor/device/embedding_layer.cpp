// Token and position embedding on a device. Symbols as in kernels/layer.h.

#include "executor/cpu/layer.h"
#include "executor/device/device_layer.h"

namespace plumb {
namespace {

class DeviceEmbedding : public DeviceLayer {
 public:
  DeviceEmbedding(const EmbeddingLayer& layer, const LayerWork& work, std::int64_t element_bytes)
      : layer_(layer),
        work_(work),
        element_bytes_(element_bytes),
        tokens_at_(parameter_offset(layer, "tokens.weight")),
        positions_at_(parameter_offset(layer, "positions.weight")),
        output_gradient_(
            place_tensor(DevicePlace::kLate, bytes_.late, tokens_of(work) * layer.hidden * element_bytes)) {}

  DeviceLayerBytes bytes() const override { return bytes_; }
  DeviceTensor input() const override { return {}; }
  DeviceTensor output_gradient() const override { return output_gradient_; }

  void forward(const DeviceLayerCall& call, void* output) const override {
    call.kernels.embedding_forward(output, call.tokens, call.weights + tokens_at_ * element_bytes_,
                                   positions_at_ < 0 ? nullptr : call.weights + positions_at_ * element_bytes_, layer_,
                                   work_);
    if (layer_.dropout > 0) drop_rows(call, 0, output, output, nullptr, work_, layer_.hidden, layer_.dropout);
  }

  void input_grad(const DeviceLayerCall&, void*) const override {}

  void weight_grad(const DeviceLayerCall& call) const override {
    std::byte* gradient = address_of(call, output_gradient_);
    if (layer_.dropout > 0) drop_rows(call, 0, gradient, gradient, nullptr, work_, layer_.hidden, layer_.dropout);
    call.kernels.embedding_backward(call.gradients + tokens_at_, at_offset(call.gradients, positions_at_), gradient,
                                    call.tokens, layer_, work_);
  }

 private:
  EmbeddingLayer layer_;
  LayerWork work_;
  std::int64_t element_bytes_;
  std::int64_t tokens_at_, positions_at_;
  DeviceLayerBytes bytes_;
  DeviceTensor output_gradient_;  // [T, h]
};

}  // namespace

std::unique_ptr<DeviceLayer> make_device_embedding(const EmbeddingLayer& layer, const LayerWork& work,
                                                   std::int64_t element_bytes) {
  return std::make_unique<DeviceEmbedding>(layer, work, element_bytes);
}

}  // namespace plumb
