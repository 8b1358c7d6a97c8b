// Final norm, projection and loss on the CPU. Symbols as in kernels/layer.h. A gradient takes the storage of a tensor
// that is not needed any more: the logits hold their own gradient already from the forward on, the input that of the
// layer's input after the input gradient.

#include <utility>

#include "executor/cpu/layer_kinds.h"

namespace plumb {
namespace {

struct HeadSaved : LayerSaved {
  Tensor input;            // [T, h]
  Tensor norm_statistics;  // [T] or [2T]
  Tensor norm_output;      // [T, h]
  Tensor logits;           // [T, V]

  std::vector<Tensor*> tensors() override { return {&input, &norm_statistics, &norm_output, &logits}; }
  Tensor* kept_input() override { return &input; }
};

class CpuHead : public CpuLayer {
 public:
  explicit CpuHead(const HeadLayer& layer)
      : layer_(layer),
        norm_gain_(parameter_offset(layer, "norm.gain")),
        norm_bias_(parameter_offset(layer, "norm.bias")),
        projection_(parameter_offset(layer, "projection.weight")) {}

  std::unique_ptr<LayerSaved> make_saved() const override { return std::make_unique<HeadSaved>(); }

  Tensor forward(const LayerCall& call, Tensor input, LayerSaved& kept) const override {
    auto& saved = static_cast<HeadSaved&>(kept);
    const CpuContext& context = call.context;
    const std::int64_t rows = tokens_of(context.work);
    TensorPool& pool = *context.pool;
    Tensor targets = pool.take(rows);
    fill_targets({targets.tokens(), static_cast<std::size_t>(rows)}, context.text, call.place);
    saved.input = std::move(input);
    saved.norm_statistics = pool.take(layer_.norm == NormKind::kLayerNorm ? 2 * rows : rows);
    saved.norm_output = pool.take(rows * layer_.hidden);
    saved.logits = pool.take(rows * layer_.vocab);
    context.kernels.norm_forward(layer_.norm, saved.norm_output.data(), saved.norm_statistics.data(),
                                 saved.input.data(), norm_parameters(call.weights), {rows, layer_.hidden},
                                 layer_.norm_epsilon);
    context.kernels.linear_forward(saved.logits.data(), saved.norm_output.data(), call.weights + projection_,
                                   {rows, layer_.vocab, layer_.hidden});
    saved.loss =
        context.kernels.cross_entropy(saved.logits.data(), targets.tokens(), rows, layer_.vocab, call.gradient_scale);
    return {};
  }

  Tensor input_grad(const LayerCall& call, Tensor, LayerSaved& kept) const override {
    auto& saved = static_cast<HeadSaved&>(kept);
    const CpuContext& context = call.context;
    const std::int64_t rows = tokens_of(context.work);
    Tensor dnorm = context.pool->take(rows * layer_.hidden);
    context.kernels.linear_input_grad(dnorm.data(), saved.logits.data(), call.weights + projection_,
                                      {rows, layer_.hidden, layer_.vocab});
    context.kernels.norm_backward(layer_.norm, saved.input.data(),
                                  {call.gradients + norm_gain_, at_offset(call.gradients, norm_bias_)}, dnorm.data(),
                                  nullptr, saved.input.data(), saved.norm_statistics.data(),
                                  norm_parameters(call.weights), {rows, layer_.hidden});
    saved.norm_statistics = {};
    return std::move(saved.input);
  }

  void weight_grad(const LayerCall& call, LayerSaved& kept) const override {
    auto& saved = static_cast<HeadSaved&>(kept);
    const std::int64_t rows = tokens_of(call.context.work);
    call.context.kernels.linear_weight_grad(call.gradients + projection_, saved.logits.data(), saved.norm_output.data(),
                                            {layer_.vocab, layer_.hidden, rows});
  }

  ElementRange tied_table(ModelEnd end) const override {
    if (end != ModelEnd::kHead || !layer_.tied) return {};
    return {projection_, layer_.vocab * layer_.hidden};
  }

 private:
  NormParameters norm_parameters(const float* weights) const {
    return {weights + norm_gain_, at_offset(weights, norm_bias_)};
  }

  HeadLayer layer_;
  std::int64_t norm_gain_, norm_bias_, projection_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_head(const HeadLayer& layer) {
  return std::make_unique<CpuHead>(layer);
}

}  // namespace plumb
