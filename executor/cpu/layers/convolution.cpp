// Convolution, bias and ReLU on the CPU: b images, [H, W, C] before and [P, F] behind, E elements of a filter.

#include <utility>

#include "executor/cpu/layers/layer_kinds.h"
#include "kernels/cpu/relu.h"

namespace plumb { inline namespace executor {
namespace {

struct ConvolutionSaved : LayerSaved {
  Tensor input;            // [b, H, W, C]
  Tensor relu_mask;        // [b * P * F / 32]
  Tensor output_gradient;  // [b, P, F], between the input and the weight gradient

  std::vector<Tensor*> tensors() override { return {&input, &relu_mask, &output_gradient}; }
  Tensor* kept_input() override { return &input; }
  std::vector<Tensor*> narrowable() override { return {&input, &output_gradient}; }
};

class CpuConvolution : public CpuLayer {
 public:
  explicit CpuConvolution(const ConvolutionLayer& layer)
      : layer_(layer), filters_(parameter_offset(layer, "weight")), bias_(parameter_offset(layer, "bias")) {}

  std::unique_ptr<LayerSaved> make_saved() const override { return std::make_unique<ConvolutionSaved>(); }

  Tensor forward(const LayerCall& call, Tensor input, LayerSaved& kept) const override {
    auto& saved = static_cast<ConvolutionSaved&>(kept);
    const CpuContext& context = call.context;
    saved.input = std::move(input);
    Tensor output = context.pool->take(output_elements(layer_, context.work));
    const std::int64_t pixels = output.elements() / layer_.filters;
    context.kernels.convolution_forward(output.data(), saved.input.data(), call.weights + filters_,
                                        size_of(context.work), context.scratch);
    context.kernels.bias_forward(output.data(), call.weights + bias_, pixels, layer_.filters);
    if (layer_.relu) {
      saved.relu_mask = context.pool->take(relu_mask_words(output.elements()));
      context.kernels.relu_forward(output.data(), saved.relu_mask.words(), pixels, layer_.filters);
    }
    return output;
  }

  Tensor input_grad(const LayerCall& call, Tensor output_gradient, LayerSaved& kept) const override {
    auto& saved = static_cast<ConvolutionSaved&>(kept);
    const CpuContext& context = call.context;
    saved.output_gradient = std::move(output_gradient);
    if (layer_.relu)
      context.kernels.relu_backward(saved.output_gradient.data(), saved.relu_mask.words(),
                                    saved.output_gradient.elements() / layer_.filters, layer_.filters);
    saved.relu_mask = {};
    if (!layer_.input_grad) return {};
    Tensor gradient = context.pool->take(saved.input.elements());
    context.kernels.convolution_input_grad(gradient.data(), saved.output_gradient.data(), call.weights + filters_,
                                           size_of(context.work), context.scratch);
    return gradient;
  }

  void weight_grad(const LayerCall& call, LayerSaved& kept) const override {
    auto& saved = static_cast<ConvolutionSaved&>(kept);
    const CpuContext& context = call.context;
    context.kernels.convolution_weight_grad(call.gradients + filters_, saved.output_gradient.data(), saved.input.data(),
                                            size_of(context.work), context.scratch);
    context.kernels.bias_backward(call.gradients + bias_, saved.output_gradient.data(),
                                  saved.output_gradient.elements() / layer_.filters, layer_.filters);
  }

  std::int64_t scratch_elements(const LayerWork& work) const override {
    return convolution_scratch_elements(size_of(work));
  }

 private:
  ConvolutionSize size_of(const LayerWork& work) const {
    return {.images = tokens_of(work),
            .height = layer_.height,
            .width = layer_.width,
            .channels = layer_.channels,
            .filters = layer_.filters,
            .kernel = layer_.kernel,
            .stride = layer_.stride,
            .padding = layer_.padding,
            .groups = layer_.groups};
  }

  ConvolutionLayer layer_;
  std::int64_t filters_, bias_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_convolution(const ConvolutionLayer& layer) {
  return std::make_unique<CpuConvolution>(layer);
}

}}  // namespace plumb::executor
