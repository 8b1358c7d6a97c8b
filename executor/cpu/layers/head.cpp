// Final norm, projection and loss on the CPU. Symbols as in kernels/layer.h. A gradient takes the storage of a
// tensor that is not needed any more: from the forward on the logits hold their own gradient, and after the input
// gradient the input holds the gradient of the layer's input. A tensor rank has V/t rows of the projection and the
// logits of these tokens. Where t does not divide V, the padding of the last rank takes no part.

#include <algorithm>
#include <utility>

#include "executor/cpu/layers/layer_kinds.h"
#include "executor/cpu/layers/tensor_parallel.h"
#include "kernels/cpu/losses/vocab_parallel_cross_entropy.h"

namespace plumb { inline namespace executor {
namespace {

struct HeadSaved : LayerSaved {
  Tensor input;            // [own rows, h]
  Tensor norm_statistics;  // [own rows], or twice that for LayerNorm
  Tensor norm_output;      // [own rows, h]
  Tensor logits;           // [T, V/t]

  std::vector<Tensor*> tensors() override { return {&input, &norm_statistics, &norm_output, &logits}; }
  Tensor* kept_input() override { return &input; }
  std::vector<Tensor*> cheap() override { return {&norm_output}; }
  std::vector<Tensor*> narrowable() override { return {&input, &norm_output, &logits}; }
};

class CpuHead : public CpuLayer {
 public:
  CpuHead(const HeadLayer& layer, const TensorSeat& seat)
      : layer_(std::get<HeadLayer>(divide_layer(layer, seat.ranks))),
        seat_(seat),
        tokens_(layer.vocab - layer.padding),
        norm_gain_(parameter_offset(layer_, "norm.gain")),
        norm_bias_(parameter_offset(layer_, "norm.bias")),
        projection_(parameter_offset(layer_, "projection.weight")) {}

  std::unique_ptr<LayerSaved> make_saved() const override { return std::make_unique<HeadSaved>(); }

  Tensor forward(const LayerCall& call, Tensor input, LayerSaved& kept) const override {
    auto& saved = static_cast<HeadSaved&>(kept);
    const CpuContext& context = call.context;
    const std::int64_t rows = tokens_of(context.work), own = own_rows(context), h = layer_.hidden;
    TensorPool& pool = *context.pool;
    Tensor targets = pool.take(rows);
    fill_targets({targets.tokens(), static_cast<std::size_t>(rows)}, context.text, call.place);
    saved.input = std::move(input);
    saved.norm_statistics = pool.take(layer_.norm == NormKind::kLayerNorm ? 2 * own : own);
    normalise(call, saved);
    saved.logits = pool.take(rows * layer_.vocab);
    const AllRows norm_output = all_rows(context, saved.norm_output, h);
    context.kernels.linear_forward(saved.logits.data(), norm_output.rows, call.weights + projection_,
                                   {rows, layer_.vocab, h});
    saved.loss = loss_of(call, targets, saved.logits);
    return {};
  }

  Tensor input_grad(const LayerCall& call, Tensor, LayerSaved& kept) const override {
    auto& saved = static_cast<HeadSaved&>(kept);
    const CpuContext& context = call.context;
    const std::int64_t rows = tokens_of(context.work), own = own_rows(context), h = layer_.hidden;
    Tensor dnorm = context.pool->take(rows * h);
    context.kernels.linear_input_grad(dnorm.data(), saved.logits.data(), call.weights + projection_,
                                      {rows, h, layer_.vocab});
    dnorm = sum_rows(context, std::move(dnorm), h);
    add_replicated(context, call.gradients + norm_gain_, norm_bias_ < 0 ? h : 2 * h, [&](float* gradients) {
      context.kernels.norm_backward(
          layer_.norm, saved.input.data(), {gradients, norm_bias_ < 0 ? nullptr : gradients + h}, dnorm.data(), nullptr,
          saved.input.data(), saved.norm_statistics.data(), norm_parameters(call.weights), {own, h});
    });
    saved.norm_statistics = {};
    return std::move(saved.input);
  }

  void weight_grad(const LayerCall& call, LayerSaved& kept) const override {
    auto& saved = static_cast<HeadSaved&>(kept);
    const std::int64_t rows = tokens_of(call.context.work);
    const AllRows norm_output = all_rows(call.context, saved.norm_output, layer_.hidden);
    call.context.kernels.linear_weight_grad(call.gradients + projection_, saved.logits.data(), norm_output.rows,
                                            {layer_.vocab, layer_.hidden, rows});
  }

  void rebuild_cheap(const LayerCall& call, LayerSaved& kept) const override {
    normalise(call, static_cast<HeadSaved&>(kept));
  }

  ElementRange tied_table(ModelEnd end) const override {
    if (end != ModelEnd::kHead || !layer_.tied) return {};
    return {projection_, layer_.vocab * layer_.hidden};
  }

 private:
  /// Computes the norm's output and statistics from the input.
  void normalise(const LayerCall& call, HeadSaved& saved) const {
    const std::int64_t own = own_rows(call.context), h = layer_.hidden;
    saved.norm_output = call.context.pool->take(own * h);
    call.context.kernels.norm_forward(layer_.norm, saved.norm_output.data(), saved.norm_statistics.data(),
                                      saved.input.data(), norm_parameters(call.weights), {own, h}, layer_.norm_epsilon);
  }

  /// Returns the summed loss and replaces the logits by their gradient.
  double loss_of(const LayerCall& call, const Tensor& targets, Tensor& logits) const {
    const CpuContext& context = call.context;
    const std::int64_t rows = tokens_of(context.work);
    if (seat_.ranks == 1)
      return context.kernels.cross_entropy(logits.data(), targets.tokens(), rows, layer_.vocab, call.gradient_scale,
                                           layer_.vocab - tokens_);
    const std::int64_t first = seat_.rank * layer_.vocab;
    const VocabPart part{.rows = rows,
                         .columns = layer_.vocab,
                         .first = first,
                         .valid = std::clamp<std::int64_t>(tokens_ - first, 0, layer_.vocab)};
    Tensor parts = context.pool->take(seat_.ranks * 3 * rows);
    cross_entropy_parts(parts.data() + seat_.rank * 3 * rows, logits.data(), targets.tokens(), part);
    context.groups.tensor->run(all_gather(parts.values()));
    return cross_entropy_from_parts(logits.data(), parts.data(), seat_.ranks, targets.tokens(), part,
                                    call.gradient_scale);
  }

  NormParameters norm_parameters(const float* weights) const {
    return {weights + norm_gain_, at_offset(weights, norm_bias_)};
  }

  HeadLayer layer_;  // this rank's share
  TensorSeat seat_;
  std::int64_t tokens_;  // of the whole vocabulary
  std::int64_t norm_gain_, norm_bias_, projection_;
};

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_head(const HeadLayer& layer, const TensorSeat& seat) {
  return std::make_unique<CpuHead>(layer, seat);
}

}}  // namespace plumb::executor
