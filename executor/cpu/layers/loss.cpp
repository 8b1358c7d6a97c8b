// The loss of samples of real numbers on the CPU: R = b samples, C numbers or classes.

#include <algorithm>
#include <utility>

#include "executor/cpu/layers/layer_kinds.h"

namespace plumb { inline namespace executor {
namespace {

struct LossSaved : LayerSaved {
  Tensor predictions;  // [R, C]; from the forward on their gradient
  Tensor input;        // [R, C] a copy of the predictions, where LayerCall::keep_input asks for it

  std::vector<Tensor*> tensors() override { return {&predictions, &input}; }
  Tensor* kept_input() override { return &input; }
  std::vector<Tensor*> narrowable() override { return {&predictions}; }
};

class CpuLoss : public CpuLayer {
 public:
  explicit CpuLoss(const LossLayer& layer) : layer_(layer) {}

  std::unique_ptr<LayerSaved> make_saved() const override { return std::make_unique<LossSaved>(); }

  Tensor forward(const LayerCall& call, Tensor input, LayerSaved& kept) const override {
    auto& saved = static_cast<LossSaved&>(kept);
    const CpuContext& context = call.context;
    const std::int64_t rows = tokens_of(context.work);
    if (call.keep_input) {
      saved.input = context.pool->take(input.elements());
      std::ranges::copy(input.values(), saved.input.values().begin());
    }
    saved.predictions = std::move(input);
    if (layer_.loss == LossKind::kCrossEntropy) {
      Tensor labels = context.pool->take(rows);
      fill_labels({labels.tokens(), static_cast<std::size_t>(rows)}, *context.samples, call.place);
      saved.loss = context.kernels.cross_entropy(saved.predictions.data(), labels.tokens(), rows, layer_.width,
                                                 call.gradient_scale);
    } else {
      Tensor targets = context.pool->take(rows * layer_.width);
      fill_sample_targets(targets.values(), *context.samples, call.place);
      saved.loss = context.kernels.squared_error(saved.predictions.data(), targets.data(), rows, layer_.width,
                                                 call.gradient_scale);
    }
    return {};
  }

  Tensor input_grad(const LayerCall&, Tensor, LayerSaved& kept) const override {
    return std::move(static_cast<LossSaved&>(kept).predictions);
  }

  void weight_grad(const LayerCall&, LayerSaved&) const override {}

 private:
  LossLayer layer_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_loss(const LossLayer& layer) {
  return std::make_unique<CpuLoss>(layer);
}

}}  // namespace plumb::executor
