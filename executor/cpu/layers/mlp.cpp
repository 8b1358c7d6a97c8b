// An MLP with its residual on the CPU: T rows, h channels outside and f inside.

#include <utility>

#include "executor/cpu/layers/layer_kinds.h"

namespace plumb { inline namespace executor {
namespace {

struct MlpSaved : LayerSaved {
  Tensor input;            // [T, h]
  Tensor up;               // [T, f]; from the input gradient on its own gradient
  Tensor activation;       // [T, f]
  Tensor output_gradient;  // [T, h], between the input and the weight gradient

  std::vector<Tensor*> tensors() override { return {&input, &up, &activation, &output_gradient}; }
  Tensor* kept_input() override { return &input; }
  std::vector<Tensor*> narrowable() override { return {&input, &up, &activation, &output_gradient}; }
};

class CpuMlp : public CpuLayer {
 public:
  explicit CpuMlp(const MlpLayer& layer)
      : layer_(layer),
        up_(parameter_offset(layer, "up.weight")),
        up_bias_(parameter_offset(layer, "up.bias")),
        down_(parameter_offset(layer, "down.weight")),
        down_bias_(parameter_offset(layer, "down.bias")) {}

  std::unique_ptr<LayerSaved> make_saved() const override { return std::make_unique<MlpSaved>(); }

  Tensor forward(const LayerCall& call, Tensor input, LayerSaved& kept) const override {
    auto& saved = static_cast<MlpSaved&>(kept);
    const CpuKernelSet& kernels = call.context.kernels;
    TensorPool& pool = *call.context.pool;
    const std::int64_t rows = tokens_of(call.context.work), h = layer_.hidden, f = layer_.ffn;
    saved.input = std::move(input);
    saved.up = pool.take(rows * f);
    kernels.linear_forward(saved.up.data(), saved.input.data(), call.weights + up_, {rows, f, h});
    kernels.bias_forward(saved.up.data(), call.weights + up_bias_, rows, f);
    saved.activation = pool.take(rows * f);
    kernels.gelu_forward(saved.activation.data(), saved.up.data(), {rows, f}, layer_.exact_gelu);
    Tensor output = pool.take(rows * h);
    kernels.linear_forward(output.data(), saved.activation.data(), call.weights + down_, {rows, h, f});
    kernels.bias_forward(output.data(), call.weights + down_bias_, rows, h);
    kernels.residual_add(output.data(), saved.input.data(), output.data(), rows, h);
    return output;
  }

  Tensor input_grad(const LayerCall& call, Tensor output_gradient, LayerSaved& kept) const override {
    auto& saved = static_cast<MlpSaved&>(kept);
    const CpuKernelSet& kernels = call.context.kernels;
    TensorPool& pool = *call.context.pool;
    const std::int64_t rows = tokens_of(call.context.work), h = layer_.hidden, f = layer_.ffn;
    saved.output_gradient = std::move(output_gradient);
    Tensor dactivation = pool.take(rows * f);
    kernels.linear_input_grad(dactivation.data(), saved.output_gradient.data(), call.weights + down_, {rows, f, h});
    kernels.gelu_backward(saved.up.data(), dactivation.data(), {rows, f}, layer_.exact_gelu);
    dactivation = {};
    Tensor gradient = pool.take(rows * h);
    kernels.linear_input_grad(gradient.data(), saved.up.data(), call.weights + up_, {rows, h, f});
    kernels.residual_add(gradient.data(), saved.output_gradient.data(), gradient.data(), rows, h);
    return gradient;
  }

  void weight_grad(const LayerCall& call, LayerSaved& kept) const override {
    auto& saved = static_cast<MlpSaved&>(kept);
    const CpuKernelSet& kernels = call.context.kernels;
    const std::int64_t rows = tokens_of(call.context.work), h = layer_.hidden, f = layer_.ffn;
    kernels.linear_weight_grad(call.gradients + down_, saved.output_gradient.data(), saved.activation.data(),
                               {h, f, rows});
    kernels.bias_backward(call.gradients + down_bias_, saved.output_gradient.data(), rows, h);
    kernels.linear_weight_grad(call.gradients + up_, saved.up.data(), saved.input.data(), {f, h, rows});
    kernels.bias_backward(call.gradients + up_bias_, saved.up.data(), rows, f);
  }

 private:
  MlpLayer layer_;
  std::int64_t up_, up_bias_, down_, down_bias_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_mlp(const MlpLayer& layer) {
  return std::make_unique<CpuMlp>(layer);
}

}}  // namespace plumb::executor
