#include "executor/cpu/layers/feed_forward.h"

#include "executor/cpu/layers/tensor_parallel.h"

namespace plumb { inline namespace executor {
namespace {

class Mlp : public FeedForward {
 public:
  explicit Mlp(const TransformerLayer& layer) : layer_(layer), width_(up_products(layer) * layer.ffn) {
    const std::string up = layer.mlp == MlpKind::kSwiglu ? "gate_up" : "up";
    up_ = parameter_offset(layer, up + ".weight");
    up_bias_ = parameter_offset(layer, up + ".bias");
    down_ = parameter_offset(layer, "down.weight");
    down_bias_ = parameter_offset(layer, "down.bias");
  }

  std::unique_ptr<FeedForwardSaved> make_saved() const override { return std::make_unique<FeedForwardSaved>(); }

  Tensor forward(const LayerCall& call, const Tensor& input, FeedForwardSaved& saved) const override {
    const CpuContext& context = call.context;
    const std::int64_t rows = tokens_of(context.work), h = layer_.hidden;
    saved.up = context.pool->take(rows * width_);
    context.kernels.linear_forward(saved.up.data(), all_rows(context, input, h).rows, call.weights + up_,
                                   {rows, width_, h});
    if (up_bias_ >= 0) context.kernels.bias_forward(saved.up.data(), call.weights + up_bias_, rows, width_);
    activate(call, saved);
    Tensor output = context.pool->take(rows * h);
    context.kernels.linear_forward(output.data(), saved.activation.data(), call.weights + down_, {rows, h, layer_.ffn});
    return output;
  }

  Tensor input_grad(const LayerCall& call, const Tensor& output_gradient, FeedForwardSaved& saved,
                    double&) const override {
    const CpuContext& context = call.context;
    const std::int64_t rows = tokens_of(context.work), h = layer_.hidden;
    Tensor dactivation = context.pool->take(rows * layer_.ffn);
    context.kernels.linear_input_grad(dactivation.data(), all_rows(context, output_gradient, h).rows,
                                      call.weights + down_, {rows, layer_.ffn, h});
    context.kernels.activation_backward(layer_, saved.up.data(), dactivation.data(), rows);
    dactivation = {};
    Tensor dinput = context.pool->take(rows * h);
    context.kernels.linear_input_grad(dinput.data(), saved.up.data(), call.weights + up_, {rows, h, width_});
    return dinput;
  }

  void weight_grad(const LayerCall& call, const Tensor& output_gradient, const Tensor& input,
                   FeedForwardSaved& saved) const override {
    const CpuContext& context = call.context;
    const CpuKernelSet& kernels = context.kernels;
    const std::int64_t rows = tokens_of(context.work), h = layer_.hidden;
    kernels.linear_weight_grad(call.gradients + down_, all_rows(context, output_gradient, h).rows,
                               saved.activation.data(), {h, layer_.ffn, rows});
    if (down_bias_ >= 0)
      add_replicated(context, call.gradients + down_bias_, h,
                     [&](float* bias) { kernels.bias_backward(bias, output_gradient.data(), own_rows(context), h); });
    kernels.linear_weight_grad(call.gradients + up_, saved.up.data(), all_rows(context, input, h).rows,
                               {width_, h, rows});
    if (up_bias_ >= 0) kernels.bias_backward(call.gradients + up_bias_, saved.up.data(), rows, width_);
  }

  void activate(const LayerCall& call, FeedForwardSaved& saved) const override {
    const std::int64_t rows = saved.up.elements() / width_;
    saved.activation = call.context.pool->take(rows * layer_.ffn);
    call.context.kernels.activation_forward(layer_, saved.activation.data(), saved.up.data(), rows);
  }

 private:
  TransformerLayer layer_;
  std::int64_t width_;  // u
  std::int64_t up_ = -1, up_bias_ = -1, down_ = -1, down_bias_ = -1;
};

}  // namespace

std::unique_ptr<FeedForward> make_mlp(const TransformerLayer& layer) {
  return std::make_unique<Mlp>(layer);
}

}}  // namespace plumb::executor
