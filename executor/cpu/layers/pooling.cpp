// Pooling on the CPU: b images, [H, W, C] before and [P, C] behind.

#include <utility>

#include "executor/cpu/layers/layer_kinds.h"

namespace plumb { inline namespace executor {
namespace {

struct PoolingSaved : LayerSaved {
  Tensor input;   // [b, H, W, C], where a recomputation starts here
  Tensor places;  // [b, P, C] place of the largest value in each window

  std::vector<Tensor*> tensors() override { return {&input, &places}; }
  Tensor* kept_input() override { return &input; }
  std::vector<Tensor*> narrowable() override { return {&input}; }
};

class CpuPooling : public CpuLayer {
 public:
  explicit CpuPooling(const PoolingLayer& layer) : layer_(layer) {}

  std::unique_ptr<LayerSaved> make_saved() const override { return std::make_unique<PoolingSaved>(); }

  Tensor forward(const LayerCall& call, Tensor input, LayerSaved& kept) const override {
    auto& saved = static_cast<PoolingSaved&>(kept);
    const CpuContext& context = call.context;
    Tensor output = context.pool->take(output_elements(layer_, context.work));
    if (layer_.pooling == PoolingKind::kMax) saved.places = context.pool->take(output.elements());
    context.kernels.pooling_forward(layer_.pooling, output.data(), saved.places.tokens(), input.data(),
                                    size_of(context.work));
    if (call.keep_input) saved.input = std::move(input);
    return output;
  }

  Tensor input_grad(const LayerCall& call, Tensor output_gradient, LayerSaved& kept) const override {
    auto& saved = static_cast<PoolingSaved&>(kept);
    const CpuContext& context = call.context;
    Tensor gradient = context.pool->take(input_elements(layer_, context.work));
    context.kernels.pooling_backward(layer_.pooling, gradient.data(), output_gradient.data(), saved.places.tokens(),
                                     size_of(context.work));
    drop_tensors(saved);
    return gradient;
  }

  void weight_grad(const LayerCall&, LayerSaved&) const override {}

 private:
  PoolingSize size_of(const LayerWork& work) const {
    return {.images = tokens_of(work),
            .height = layer_.height,
            .width = layer_.width,
            .channels = layer_.channels,
            .kernel = layer_.kernel,
            .stride = layer_.stride};
  }

  PoolingLayer layer_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_pooling(const PoolingLayer& layer) {
  return std::make_unique<CpuPooling>(layer);
}

}}  // namespace plumb::executor
