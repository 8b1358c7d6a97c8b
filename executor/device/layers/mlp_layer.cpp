// An MLP with its residual on a device. It has T rows, h channels outside and f inside. After the input gradient, `up`
// holds its own gradient.

#include "executor/cpu/layers/layer.h"
#include "executor/device/layers/image_layers.h"

namespace plumb { inline namespace executor {
namespace {

class DeviceMlp : public DeviceLayer {
 public:
  DeviceMlp(const MlpLayer& layer, const LayerWork& work, std::int64_t element_bytes)
      : layer_(layer),
        rows_(tokens_of(work)),
        element_bytes_(element_bytes),
        up_at_(parameter_offset(layer, "up.weight")),
        up_bias_(parameter_offset(layer, "up.bias")),
        down_at_(parameter_offset(layer, "down.weight")),
        down_bias_(parameter_offset(layer, "down.bias")) {
    const std::int64_t outer = rows_ * layer.hidden * element_bytes, inner = rows_ * layer.ffn * element_bytes;
    input_ = place_tensor(DevicePlace::kLate, bytes_.late, outer);
    up_ = place_tensor(DevicePlace::kLate, bytes_.late, inner);
    activated_ = place_tensor(DevicePlace::kLate, bytes_.late, inner);
    output_gradient_ = place_tensor(DevicePlace::kLate, bytes_.late, outer);
    activated_gradient_ = place_tensor(DevicePlace::kWorkspace, bytes_.backward_workspace, inner);
  }

  DeviceLayerBytes bytes() const override { return bytes_; }
  DeviceTensor input() const override { return input_; }
  DeviceTensor output_gradient() const override { return output_gradient_; }

  void forward(const DeviceLayerCall& call, void* output) const override {
    const std::int64_t h = layer_.hidden, f = layer_.ffn;
    DeviceKernels& kernels = call.kernels;
    kernels.linear_forward(address_of(call, up_), address_of(call, input_), weight(call, up_at_), {rows_, f, h});
    kernels.bias_forward(address_of(call, up_), call.vector(up_bias_), rows_, f);
    kernels.gelu_forward(address_of(call, activated_), address_of(call, up_), rows_ * f, layer_.exact_gelu);
    kernels.linear_forward(output, address_of(call, activated_), weight(call, down_at_), {rows_, h, f});
    kernels.residual_add(output, address_of(call, input_), output, call.vector(down_bias_), rows_, h);
  }

  void input_grad(const DeviceLayerCall& call, void* input_gradient) const override {
    const std::int64_t h = layer_.hidden, f = layer_.ffn;
    DeviceKernels& kernels = call.kernels;
    const std::byte* const gradient = address_of(call, output_gradient_);
    kernels.linear_input_grad(address_of(call, activated_gradient_), gradient, weight(call, down_at_), {rows_, f, h});
    kernels.gelu_backward(address_of(call, up_), address_of(call, activated_gradient_), rows_ * f, layer_.exact_gelu);
    if (input_gradient == nullptr) return;  // the input layer takes no gradient
    kernels.linear_input_grad(input_gradient, address_of(call, up_), weight(call, up_at_), {rows_, h, f});
    kernels.residual_add(input_gradient, gradient, input_gradient, nullptr, rows_, h);
  }

  void weight_grad(const DeviceLayerCall& call) const override {
    const std::int64_t h = layer_.hidden, f = layer_.ffn;
    DeviceKernels& kernels = call.kernels;
    const std::byte* const gradient = address_of(call, output_gradient_);
    kernels.linear_weight_grad(call.gradients + down_at_, gradient, address_of(call, activated_), {h, f, rows_});
    kernels.bias_backward(call.gradients + down_bias_, gradient, rows_, h);
    kernels.linear_weight_grad(call.gradients + up_at_, address_of(call, up_), address_of(call, input_), {f, h, rows_});
    kernels.bias_backward(call.gradients + up_bias_, address_of(call, up_), rows_, f);
  }

 private:
  const std::byte* weight(const DeviceLayerCall& call, std::int64_t at) const {
    return call.weights + at * element_bytes_;
  }

  MlpLayer layer_;
  std::int64_t rows_;  // T
  std::int64_t element_bytes_;
  std::int64_t up_at_, up_bias_, down_at_, down_bias_;
  DeviceLayerBytes bytes_;
  DeviceTensor input_;               // [T, h]
  DeviceTensor up_;                  // [T, f]
  DeviceTensor activated_;           // [T, f]
  DeviceTensor output_gradient_;     // [T, h]
  DeviceTensor activated_gradient_;  // [T, f]
};

}  // namespace

std::unique_ptr<DeviceLayer> make_device_mlp(const MlpLayer& layer, const LayerWork& work, std::int64_t element_bytes) {
  return std::make_unique<DeviceMlp>(layer, work, element_bytes);
}

}}  // namespace plumb::executor
