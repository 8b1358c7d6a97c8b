// Pooling on a device. The input has T images [H, W, C] and the output [P, C]. Only the places of the largest elements
// are kept from the forward to the backward.

#include "executor/device/layers/image_layers.h"

namespace plumb { inline namespace executor {
namespace {

class DevicePooling : public DeviceLayer {
 public:
  DevicePooling(const PoolingLayer& layer, const LayerWork& work, std::int64_t element_bytes)
      : size_{.images = tokens_of(work),
              .height = layer.height,
              .width = layer.width,
              .channels = layer.channels,
              .kernel = layer.kernel,
              .stride = layer.stride} {
    const std::int64_t outputs = output_elements(layer, work);
    input_ = output_gradient_ = place_passing(bytes_, input_elements(layer, work) * element_bytes);
    place_passing(bytes_, outputs * element_bytes);
    if (layer.pooling == PoolingKind::kMax)
      places_ = place_tensor(DevicePlace::kEarly, bytes_.early, outputs * std::int64_t{sizeof(std::int32_t)});
  }

  DeviceLayerBytes bytes() const override { return bytes_; }
  DeviceTensor input() const override { return input_; }
  DeviceTensor output_gradient() const override { return output_gradient_; }

  void forward(const DeviceLayerCall& call, void* output) const override {
    call.kernels.pooling_forward(output, places(call), address_of(call, input_), size_);
  }
  void input_grad(const DeviceLayerCall& call, void* input_gradient) const override {
    if (input_gradient == nullptr) return;  // the input layer takes no gradient
    call.kernels.pooling_backward(input_gradient, address_of(call, output_gradient_), places(call), size_);
  }
  void weight_grad(const DeviceLayerCall&) const override {}

 private:
  std::int32_t* places(const DeviceLayerCall& call) const {
    return reinterpret_cast<std::int32_t*>(address_of(call, places_));
  }

  PoolingSize size_;
  DeviceLayerBytes bytes_;
  DeviceTensor input_;            // [T, H, W, C]
  DeviceTensor output_gradient_;  // [T, P, C]
  DeviceTensor places_;           // [T, P, C] places of the largest elements
};

}  // namespace

std::unique_ptr<DeviceLayer> make_device_pooling(const PoolingLayer& layer, const LayerWork& work,
                                                 std::int64_t element_bytes) {
  return std::make_unique<DevicePooling>(layer, work, element_bytes);
}

}}  // namespace plumb::executor
