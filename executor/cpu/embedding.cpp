// Token and position embedding on the CPU. Symbols as in kernels/layer.h.

#include <utility>

#include "executor/cpu/layer_kinds.h"

namespace plumb {
namespace {

struct EmbeddingSaved : LayerSaved {
  Tensor tokens;           // [T]
  Tensor output_gradient;  // [T, h], between the input and the weight gradient

  std::vector<Tensor*> tensors() override { return {&tokens, &output_gradient}; }
  Tensor* kept_input() override { return nullptr; }
};

class CpuEmbedding : public CpuLayer {
 public:
  explicit CpuEmbedding(const EmbeddingLayer& layer)
      : layer_(layer),
        tokens_at_(parameter_offset(layer, "tokens.weight")),
        positions_at_(parameter_offset(layer, "positions.weight")) {}

  std::unique_ptr<LayerSaved> make_saved() const override { return std::make_unique<EmbeddingSaved>(); }

  Tensor forward(const LayerCall& call, Tensor, LayerSaved& kept) const override {
    auto& saved = static_cast<EmbeddingSaved&>(kept);
    const CpuContext& context = call.context;
    const std::int64_t tokens = tokens_of(context.work);
    saved.tokens = context.pool->take(tokens);
    fill_inputs({saved.tokens.tokens(), static_cast<std::size_t>(tokens)}, context.text, call.place);
    Tensor output = context.pool->take(tokens * layer_.hidden);
    context.kernels.embedding_forward(output.data(), saved.tokens.tokens(), call.weights + tokens_at_,
                                      positions_from(call.weights, context), layer_, context.work);
    return output;
  }

  Tensor input_grad(const LayerCall&, Tensor output_gradient, LayerSaved& kept) const override {
    static_cast<EmbeddingSaved&>(kept).output_gradient = std::move(output_gradient);
    return {};
  }

  void weight_grad(const LayerCall& call, LayerSaved& kept) const override {
    auto& saved = static_cast<EmbeddingSaved&>(kept);
    const CpuContext& context = call.context;
    context.kernels.embedding_backward(call.gradients + tokens_at_, positions_from(call.gradients, context),
                                       saved.output_gradient.data(), saved.tokens.tokens(), layer_, context.work);
  }

  ElementRange tied_table(ModelEnd end) const override {
    if (end != ModelEnd::kEmbedding) return {};
    return {tokens_at_, layer_.vocab * layer_.hidden};
  }

 private:
  /// The row of the position table that a slice begins with; null without positions.
  template <class T>
  T* positions_from(T* block, const CpuContext& context) const {
    return positions_at_ < 0 ? nullptr : block + positions_at_ + context.first_token * layer_.hidden;
  }

  EmbeddingLayer layer_;
  std::int64_t tokens_at_, positions_at_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_embedding(const EmbeddingLayer& layer) {
  return std::make_unique<CpuEmbedding>(layer);
}

}  // namespace plumb
