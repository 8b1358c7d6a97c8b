// The loss of samples on a device. There are T samples of C numbers or classes.

#include "executor/device/layers/image_layers.h"

namespace plumb { inline namespace executor {
namespace {

class DeviceLoss : public DeviceLayer {
 public:
  DeviceLoss(const LossLayer& layer, const LayerWork& work, std::int64_t element_bytes)
      : layer_(layer), rows_(tokens_of(work)), prediction_bytes_(rows_ * layer.width * element_bytes) {
    predictions_ = place_tensor(DevicePlace::kEarly, bytes_.early, prediction_bytes_);
  }

  DeviceLayerBytes bytes() const override { return bytes_; }
  DeviceTensor input() const override { return predictions_; }
  DeviceTensor output_gradient() const override { return {}; }

  void forward(const DeviceLayerCall& call, void*) const override {
    void* const predictions = address_of(call, predictions_);
    if (layer_.loss == LossKind::kCrossEntropy)
      call.kernels.cross_entropy(call.losses, predictions, call.targets,
                                 {.rows = rows_, .columns = layer_.width, .valid = layer_.width}, call.gradient_scale,
                                 call.loss_scale);
    else
      call.kernels.squared_error(call.losses, predictions, call.sample_targets, rows_, layer_.width,
                                 call.gradient_scale, call.loss_scale);
  }
  void input_grad(const DeviceLayerCall& call, void* input_gradient) const override {
    if (input_gradient != nullptr) call.kernels.copy(input_gradient, address_of(call, predictions_), prediction_bytes_);
  }
  void weight_grad(const DeviceLayerCall&) const override {}

 private:
  LossLayer layer_;
  std::int64_t rows_;  // T
  std::int64_t prediction_bytes_;
  DeviceLayerBytes bytes_;
  DeviceTensor predictions_;  // [T, C]; from the forward on their gradient
};

}  // namespace

std::unique_ptr<DeviceLayer> make_device_loss(const LossLayer& layer, const LayerWork& work,
                                              std::int64_t element_bytes) {
  return std::make_unique<DeviceLoss>(layer, work, element_bytes);
}

}}  // namespace plumb::executor
