// A linear layer with its activation and dropout on a device. It has T rows, [in] as input and [out] as output.

#include "executor/cpu/layers/layer.h"
#include "executor/device/layers/image_layers.h"
#include "kernels/simt/relu.h"

namespace plumb { inline namespace executor {
namespace {

class DeviceLinear : public DeviceLayer {
 public:
  DeviceLinear(const LinearLayer& layer, const LayerWork& work, std::int64_t element_bytes)
      : layer_(layer),
        rows_(tokens_of(work)),
        element_bytes_(element_bytes),
        weight_(parameter_offset(layer, "weight")),
        bias_(parameter_offset(layer, "bias")),
        dropped_{.count = work.microbatch, .tokens = work.sequence, .columns = layer.out} {
    const std::int64_t outputs = rows_ * layer.out;
    input_ = place_tensor(DevicePlace::kLate, bytes_.late, rows_ * layer.in * element_bytes);
    if (layer.activation == Activation::kGelu) {
      product_ = place_tensor(DevicePlace::kLate, bytes_.late, outputs * element_bytes);
      output_gradient_ = place_passing(bytes_, outputs * element_bytes);
    } else {
      product_ = output_gradient_ = place_tensor(DevicePlace::kLate, bytes_.late, outputs * element_bytes);
    }
    if (layer.activation == Activation::kRelu)
      mask_ = place_tensor(DevicePlace::kEarly, bytes_.early, simt::relu_mask_bytes(outputs));
  }

  DeviceLayerBytes bytes() const override { return bytes_; }
  DeviceTensor input() const override { return input_; }
  DeviceTensor output_gradient() const override { return output_gradient_; }

  void forward(const DeviceLayerCall& call, void* output) const override {
    const bool is_gelu = layer_.activation == Activation::kGelu, is_relu = layer_.activation == Activation::kRelu;
    void* const product = is_gelu ? address_of(call, product_) : output;
    call.kernels.linear_forward(product, address_of(call, input_), weight(call), {rows_, layer_.out, layer_.in});
    if (is_relu)
      call.kernels.relu_forward(output, mask(call), call.vector(bias_), rows_, layer_.out);
    else if (layer_.bias)
      call.kernels.bias_forward(product, call.vector(bias_), rows_, layer_.out);
    if (is_gelu) call.kernels.gelu_forward(output, product, rows_ * layer_.out, layer_.exact_gelu);
    drop(call, output);
  }

  void input_grad(const DeviceLayerCall& call, void* input_gradient) const override {
    std::byte* const gradient = address_of(call, output_gradient_);
    std::byte* const of_product = address_of(call, product_);
    drop(call, gradient);
    if (layer_.activation == Activation::kRelu) call.kernels.relu_backward(gradient, mask(call), rows_ * layer_.out);
    if (layer_.activation == Activation::kGelu)
      call.kernels.gelu_backward(of_product, gradient, rows_ * layer_.out, layer_.exact_gelu);
    if (layer_.input_grad && input_gradient != nullptr)
      call.kernels.linear_input_grad(input_gradient, of_product, weight(call), {rows_, layer_.in, layer_.out});
  }

  void weight_grad(const DeviceLayerCall& call) const override {
    const std::byte* const of_product = address_of(call, product_);
    call.kernels.linear_weight_grad(call.gradients + weight_, of_product, address_of(call, input_),
                                    {layer_.out, layer_.in, rows_});
    if (layer_.bias) call.kernels.bias_backward(call.gradients + bias_, of_product, rows_, layer_.out);
  }

 private:
  const std::byte* weight(const DeviceLayerCall& call) const { return call.weights + weight_ * element_bytes_; }
  std::uint8_t* mask(const DeviceLayerCall& call) const {
    return reinterpret_cast<std::uint8_t*>(address_of(call, mask_));
  }
  /// Drops elements of the output, or of its gradient, in place.
  void drop(const DeviceLayerCall& call, void* rows) const {
    if (layer_.dropout == 0) return;
    DropoutRows own = dropped_;
    own.first_sample = call.first_sample;
    call.kernels.dropout(rows, rows, nullptr, dropout_key(call, 0), own, layer_.dropout, call.numbers);
  }

  LinearLayer layer_;
  std::int64_t rows_;  // T
  std::int64_t element_bytes_;
  std::int64_t weight_, bias_;
  DropoutRows dropped_;
  DeviceLayerBytes bytes_;
  DeviceTensor input_;  // [T, in]
  // [T, out] before a GELU, and from the input gradient on its gradient; without a GELU, the output's gradient.
  DeviceTensor product_;
  DeviceTensor output_gradient_;  // [T, out]
  DeviceTensor mask_;             // one bit an output
};

}  // namespace

std::unique_ptr<DeviceLayer> make_device_linear(const LinearLayer& layer, const LayerWork& work,
                                                std::int64_t element_bytes) {
  return std::make_unique<DeviceLinear>(layer, work, element_bytes);
}

}}  // namespace plumb::executor
