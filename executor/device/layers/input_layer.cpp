// Samples of real numbers from the data. The host has put those of all micro-batches on the device.

#include "executor/device/layers/image_layers.h"

namespace plumb { inline namespace executor {
namespace {

class DeviceInput : public DeviceLayer {
 public:
  DeviceInput(const InputLayer& layer, const LayerWork& work, std::int64_t element_bytes)
      : sample_bytes_(output_elements(layer, work) * element_bytes) {}

  DeviceLayerBytes bytes() const override { return {}; }
  DeviceTensor input() const override { return {}; }
  DeviceTensor output_gradient() const override { return {}; }

  void forward(const DeviceLayerCall& call, void* output) const override {
    call.kernels.copy(output, call.samples, sample_bytes_);
  }
  void input_grad(const DeviceLayerCall&, void*) const override {}
  void weight_grad(const DeviceLayerCall&) const override {}

 private:
  std::int64_t sample_bytes_;  // bytes of a micro-batch's samples
};

}  // namespace

std::unique_ptr<DeviceLayer> make_device_input(const InputLayer& layer, const LayerWork& work,
                                               std::int64_t element_bytes) {
  return std::make_unique<DeviceInput>(layer, work, element_bytes);
}

}}  // namespace plumb::executor
