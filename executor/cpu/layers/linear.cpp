// A linear layer with its activation and dropout on the CPU: T rows, [in] before and [out] behind.

#include <utility>

#include "executor/cpu/layers/layer_kinds.h"
#include "kernels/cpu/relu.h"

namespace plumb { inline namespace executor {
namespace {

struct LinearSaved : LayerSaved {
  Tensor input;              // [T, in]
  Tensor before_activation;  // [T, out] input of a GELU; from the input gradient on its own gradient
  Tensor relu_mask;          // [T * out / 32]
  Tensor output_gradient;    // [T, out] without a GELU, between the input and the weight gradient

  std::vector<Tensor*> tensors() override { return {&input, &before_activation, &relu_mask, &output_gradient}; }
  Tensor* kept_input() override { return &input; }
  std::vector<Tensor*> narrowable() override { return {&input, &before_activation, &output_gradient}; }
};

class CpuLinear : public CpuLayer {
 public:
  explicit CpuLinear(const LinearLayer& layer)
      : layer_(layer), weight_(parameter_offset(layer, "weight")), bias_(parameter_offset(layer, "bias")) {}

  std::unique_ptr<LayerSaved> make_saved() const override { return std::make_unique<LinearSaved>(); }

  Tensor forward(const LayerCall& call, Tensor input, LayerSaved& kept) const override {
    auto& saved = static_cast<LinearSaved&>(kept);
    const CpuContext& context = call.context;
    const CpuKernelSet& kernels = context.kernels;
    const std::int64_t rows = tokens_of(context.work), out = layer_.out;
    saved.input = std::move(input);
    Tensor output = context.pool->take(rows * out);
    kernels.linear_forward(output.data(), saved.input.data(), call.weights + weight_, {rows, out, layer_.in});
    if (layer_.bias) kernels.bias_forward(output.data(), call.weights + bias_, rows, out);
    if (layer_.activation == Activation::kRelu) {
      saved.relu_mask = context.pool->take(relu_mask_words(rows * out));
      kernels.relu_forward(output.data(), saved.relu_mask.words(), rows, out);
    }
    if (layer_.activation == Activation::kGelu) {
      saved.before_activation = std::move(output);
      output = context.pool->take(rows * out);
      kernels.gelu_forward(output.data(), saved.before_activation.data(), {rows, out}, layer_.exact_gelu);
    }
    drop(call, output);
    return output;
  }

  Tensor input_grad(const LayerCall& call, Tensor output_gradient, LayerSaved& kept) const override {
    auto& saved = static_cast<LinearSaved&>(kept);
    const CpuContext& context = call.context;
    const CpuKernelSet& kernels = context.kernels;
    const std::int64_t rows = tokens_of(context.work), out = layer_.out;
    drop(call, output_gradient);
    if (layer_.activation == Activation::kRelu)
      kernels.relu_backward(output_gradient.data(), saved.relu_mask.words(), rows, out);
    if (layer_.activation == Activation::kGelu) {
      kernels.gelu_backward(saved.before_activation.data(), output_gradient.data(), {rows, out}, layer_.exact_gelu);
      output_gradient = {};
    }
    saved.relu_mask = {};
    saved.output_gradient = std::move(output_gradient);
    if (!layer_.input_grad) return {};
    Tensor gradient = context.pool->take(rows * layer_.in);
    kernels.linear_input_grad(gradient.data(), gradient_of_product(saved).data(), call.weights + weight_,
                              {rows, layer_.in, out});
    return gradient;
  }

  void weight_grad(const LayerCall& call, LayerSaved& kept) const override {
    auto& saved = static_cast<LinearSaved&>(kept);
    const std::int64_t rows = tokens_of(call.context.work);
    const CpuKernelSet& kernels = call.context.kernels;
    const float* gradient = gradient_of_product(saved).data();
    kernels.linear_weight_grad(call.gradients + weight_, gradient, saved.input.data(), {layer_.out, layer_.in, rows});
    if (layer_.bias) kernels.bias_backward(call.gradients + bias_, gradient, rows, layer_.out);
  }

 private:
  /// Returns the gradient of x W^T + bias, after the input gradient. [T, out]
  const Tensor& gradient_of_product(const LinearSaved& saved) const {
    return layer_.activation == Activation::kGelu ? saved.before_activation : saved.output_gradient;
  }

  /// Drops elements of the output, or of its gradient, in place.
  void drop(const LayerCall& call, Tensor& tensor) const {
    if (layer_.dropout == 0) return;
    const DropoutSite site = dropout_site(call, 0, layer_.out);
    call.context.kernels.dropout(tensor.data(), tensor.data(), site.key, site.rows, layer_.dropout);
  }

  LinearLayer layer_;
  std::int64_t weight_, bias_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_linear(const LinearLayer& layer) {
  return std::make_unique<CpuLinear>(layer);
}

}}  // namespace plumb::executor
