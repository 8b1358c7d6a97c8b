// A decoder block on the CPU. Symbols as in kernels/layer.h: T tokens, h hidden, q = a*d, w = (a+2k)*d, f
// feed-forward, u = 2f (gated) or f. A gradient takes the storage of a saved tensor that is not needed any more:
//
//   saved tensor   after the input gradient it holds
//   input          the gradient of the layer's input, handed to the layer before (or sent)
//   residual       the gradient between attention and MLP
//   qkv            its own gradient
//
// A tensor rank has a/t heads and f/t channels of every row (a, k and f below are its own). Between the products it has
// R own rows (executor/cpu/layers/tensor_parallel.h).

#include <algorithm>
#include <iterator>
#include <utility>

#include "executor/cpu/layers/block_attention.h"
#include "executor/cpu/layers/feed_forward.h"
#include "executor/cpu/layers/layer_kinds.h"
#include "executor/cpu/layers/tensor_parallel.h"

namespace plumb { inline namespace executor {
namespace {

/// Offsets of a block's parameters in its block of weights, and of their gradients in the block of gradients. -1: there
/// is no parameter of that name.
struct TransformerOffsets {
  std::int64_t norm1_gain = -1, norm1_bias = -1, qkv = -1, qkv_bias = -1, output = -1, output_bias = -1;
  std::int64_t norm2_gain = -1, norm2_bias = -1, feed_forward_bias = -1;
};

struct TransformerSaved : LayerSaved {
  explicit TransformerSaved(std::unique_ptr<FeedForwardSaved> inner) : feed_forward(std::move(inner)) {}

  Tensor input;             // [R, h]
  Tensor norm1_statistics;  // [R] or [2R]
  Tensor norm1_output;      // [R, h]
  Tensor qkv;               // [T, w]; under Ulysses the result of the all-to-all
  Tensor log_sum_exp;       // [b, a, s]
  Tensor attention_output;  // [T, q]
  Tensor residual;          // [R, h]; empty with a parallel residual
  Tensor norm2_statistics;  // [R] or [2R]
  Tensor norm2_output;      // [R, h]
  std::unique_ptr<FeedForwardSaved> feed_forward;
  Tensor output_gradient;  // [R, h], between the input and the weight gradient

  std::vector<Tensor*> tensors() override {
    std::vector<Tensor*> all = {&input,    &norm1_statistics, &norm1_output, &qkv, &log_sum_exp, &attention_output,
                                &residual, &norm2_statistics, &norm2_output};
    std::ranges::copy(feed_forward->tensors(), std::back_inserter(all));
    all.push_back(&output_gradient);
    return all;
  }
  Tensor* kept_input() override { return &input; }
  std::vector<Tensor*> cheap() override {
    std::vector<Tensor*> all = {&norm1_output, &norm2_output};
    std::ranges::copy(feed_forward->cheap(), std::back_inserter(all));
    return all;
  }
  std::vector<Tensor*> narrowable() override {
    std::vector<Tensor*> all = {&input, &norm1_output, &qkv, &attention_output, &residual, &norm2_output};
    std::ranges::copy(feed_forward->narrowable(), std::back_inserter(all));
    all.push_back(&output_gradient);
    return all;
  }
};

/// Sizes of a block's tensors.
struct Sizes {
  std::int64_t rows;   // T
  std::int64_t own;    // R
  std::int64_t query;  // q
  std::int64_t qkv;    // w
  std::int64_t statistics;
};

Sizes sizes_of(const TransformerLayer& layer, const CpuContext& context) {
  const std::int64_t rows = tokens_of(context.work), own = own_rows(context);
  return {.rows = rows,
          .own = own,
          .query = layer.heads * layer.head_size,
          .qkv = (layer.heads + 2 * layer.kv_heads) * layer.head_size,
          .statistics = layer.norm == NormKind::kLayerNorm ? 2 * own : own};
}

RotarySize rotary_size(const TransformerLayer& layer, const LayerWork& work, const Sizes& sizes) {
  return {.tokens = sizes.rows,
          .sequence = work.sequence,
          .heads = layer.heads + layer.kv_heads,
          .head_size = layer.head_size,
          .row_width = sizes.qkv,
          .rotary_size = layer.rotary_size};
}

TransformerOffsets offsets_of(const TransformerLayer& layer) {
  const auto offset = [&](const std::string& name) { return parameter_offset(layer, name); };
  return {.norm1_gain = offset("norm1.gain"),
          .norm1_bias = offset("norm1.bias"),
          .qkv = offset("qkv.weight"),
          .qkv_bias = offset("qkv.bias"),
          .output = offset("attention_output.weight"),
          .output_bias = offset("attention_output.bias"),
          .norm2_gain = offset("norm2.gain"),
          .norm2_bias = offset("norm2.bias"),
          .feed_forward_bias = offset("down.bias")};
}

class CpuTransformer : public CpuLayer {
 public:
  CpuTransformer(const TransformerLayer& transformer, std::int64_t sequence, const LayerSeat& seat)
      : layer_(transformer),
        at_(offsets_of(transformer)),
        seat_(seat.context),
        kv_sharers_(seat.kv_sharers),
        sequence_(sequence),
        feed_forward_(transformer.experts > 0 ? make_experts(transformer, seat) : make_mlp(transformer)) {
    if (layer_.rotary_size == 0) return;
    const std::vector<float> whole = rotary_table(sequence, layer_.rotary_size, layer_.rope_theta);
    for (int slice = 0; slice < seat.slices; ++slice) {
      const ContextTokens tokens = context_tokens(slice_tokens(sequence, seat.slices, slice), seat_);
      for (const TokenRange& run : {tokens.first, tokens.second})
        rotary_.insert(rotary_.end(), whole.begin() + run.first * layer_.rotary_size,
                       whole.begin() + (run.first + run.count) * layer_.rotary_size);
    }
  }

  std::unique_ptr<LayerSaved> make_saved() const override {
    return std::make_unique<TransformerSaved>(feed_forward_->make_saved());
  }
  Tensor forward(const LayerCall& call, Tensor input, LayerSaved& kept) const override;
  Tensor input_grad(const LayerCall& call, Tensor output_gradient, LayerSaved& kept) const override;
  void weight_grad(const LayerCall& call, LayerSaved& kept) const override;
  void rebuild_cheap(const LayerCall& call, LayerSaved& kept) const override;
  std::int64_t scratch_elements(const LayerWork& work) const override {
    return attend_scratch_elements(layer_, work, sequence_, seat_);
  }

 private:
  /// Compute the outputs and statistics of norm 1 and of norm 2 from their inputs.
  void normalise_input(const LayerCall& call, TransformerSaved& saved) const;
  void normalise_mlp_input(const LayerCall& call, const float* mlp_input, TransformerSaved& saved) const;

  /// Returns the gradient of a branch before its dropout, in `copy`, or `gradient` itself where there is no dropout.
  const Tensor& branch_gradient(const LayerCall& call, BlockDropout branch, const Tensor& gradient,
                                Tensor& copy) const {
    if (layer_.dropout == 0) return gradient;
    copy = call.context.pool->take(gradient.elements());
    drop_own_rows(call, branch, copy.data(), gradient.data(), layer_.hidden, layer_.dropout);
    return copy;
  }
  void drop_branch(const LayerCall& call, BlockDropout branch, Tensor& rows) const {
    if (layer_.dropout > 0) drop_own_rows(call, branch, rows.data(), rows.data(), layer_.hidden, layer_.dropout);
  }

  /// Calls `backward` with the addresses to which it adds the gradients of a norm's gain and bias, which lie one behind
  /// the other.
  template <class Backward>
  void add_norm_gradients(const LayerCall& call, std::int64_t gain, std::int64_t bias, Backward backward) const {
    const std::int64_t h = layer_.hidden;
    add_replicated(call.context, call.gradients + gain, bias < 0 ? h : 2 * h, [&](float* gradients) {
      backward(NormGradients{gradients, bias < 0 ? nullptr : gradients + h});
    });
  }

  const float* rotary_of(const CpuContext& context) const {
    return rotary_.data() + own_tokens_before(context) * layer_.rotary_size;
  }

  TransformerLayer layer_;
  TransformerOffsets at_;
  ContextSeat seat_;
  int kv_sharers_;         // tensor ranks that have these kv heads
  std::int64_t sequence_;  // s
  std::unique_ptr<FeedForward> feed_forward_;
  std::vector<float> rotary_;  // rotary_table [s, rotary_size], or its rows of the context rank's tokens, by slice
};

void CpuTransformer::normalise_input(const LayerCall& call, TransformerSaved& saved) const {
  const std::int64_t own = saved.input.elements() / layer_.hidden;
  saved.norm1_output = call.context.pool->take(saved.input.elements());
  call.context.kernels.norm_forward(layer_.norm, saved.norm1_output.data(), saved.norm1_statistics.data(),
                                    saved.input.data(),
                                    {call.weights + at_.norm1_gain, at_offset(call.weights, at_.norm1_bias)},
                                    {own, layer_.hidden}, layer_.norm_epsilon);
}

void CpuTransformer::normalise_mlp_input(const LayerCall& call, const float* mlp_input, TransformerSaved& saved) const {
  const std::int64_t own = saved.input.elements() / layer_.hidden;
  saved.norm2_output = call.context.pool->take(saved.input.elements());
  call.context.kernels.norm_forward(layer_.norm, saved.norm2_output.data(), saved.norm2_statistics.data(), mlp_input,
                                    {call.weights + at_.norm2_gain, at_offset(call.weights, at_.norm2_bias)},
                                    {own, layer_.hidden}, layer_.norm_epsilon);
}

void CpuTransformer::rebuild_cheap(const LayerCall& call, LayerSaved& kept) const {
  auto& saved = static_cast<TransformerSaved&>(kept);
  normalise_input(call, saved);
  normalise_mlp_input(call, layer_.parallel_residual ? saved.input.data() : saved.residual.data(), saved);
  feed_forward_->activate(call, *saved.feed_forward);
}

Tensor CpuTransformer::forward(const LayerCall& call, Tensor input, LayerSaved& kept) const {
  auto& saved = static_cast<TransformerSaved&>(kept);
  const CpuContext& context = call.context;
  const float* weights = call.weights;
  const CpuKernelSet& kernels = context.kernels;
  TensorPool& pool = *context.pool;
  const Sizes size = sizes_of(layer_, context);
  const std::int64_t rows = size.rows, own = size.own, h = layer_.hidden;

  saved.input = std::move(input);
  saved.norm1_statistics = pool.take(size.statistics);
  normalise_input(call, saved);
  saved.qkv = pool.take(rows * size.qkv);
  kernels.linear_forward(saved.qkv.data(), all_rows(context, saved.norm1_output, h).rows, weights + at_.qkv,
                         {rows, size.qkv, h});
  if (layer_.qkv_bias) kernels.bias_forward(saved.qkv.data(), weights + at_.qkv_bias, rows, size.qkv);
  if (layer_.rotary_size > 0)
    kernels.rotary(saved.qkv.data(), rotary_of(context), rotary_size(layer_, context.work, size),
                   RotaryDirection::kForward);
  saved.log_sum_exp = pool.take(rows * layer_.heads);
  saved.attention_output = pool.take(rows * size.query);
  attend(layer_, call, seat_, saved.attention_output.data(), saved.log_sum_exp.data(), saved.qkv);
  Tensor residual = pool.take(rows * h);
  kernels.linear_forward(residual.data(), saved.attention_output.data(), weights + at_.output, {rows, h, size.query});
  residual = sum_rows(context, std::move(residual), h);
  if (layer_.linear_bias) kernels.bias_forward(residual.data(), weights + at_.output_bias, own, h);
  drop_branch(call, kAttentionBranch, residual);
  kernels.residual_add(residual.data(), saved.input.data(), residual.data(), own, h);

  const float* mlp_input = layer_.parallel_residual ? saved.input.data() : residual.data();
  saved.norm2_statistics = pool.take(size.statistics);
  normalise_mlp_input(call, mlp_input, saved);
  Tensor output = sum_rows(context, feed_forward_->forward(call, saved.norm2_output, *saved.feed_forward), h);
  if (at_.feed_forward_bias >= 0) kernels.bias_forward(output.data(), weights + at_.feed_forward_bias, own, h);
  drop_branch(call, kFeedForwardBranch, output);
  kernels.residual_add(output.data(), residual.data(), output.data(), own, h);
  if (!layer_.parallel_residual) saved.residual = std::move(residual);
  return output;
}

Tensor CpuTransformer::input_grad(const LayerCall& call, Tensor output_gradient, LayerSaved& kept) const {
  auto& saved = static_cast<TransformerSaved&>(kept);
  const CpuContext& context = call.context;
  const float* weights = call.weights;
  const CpuKernelSet& kernels = context.kernels;
  TensorPool& pool = *context.pool;
  const Sizes size = sizes_of(layer_, context);
  const std::int64_t rows = size.rows, own = size.own, h = layer_.hidden;
  saved.output_gradient = std::move(output_gradient);

  Tensor copy;
  Tensor dnorm = feed_forward_->input_grad(call, branch_gradient(call, kFeedForwardBranch, saved.output_gradient, copy),
                                           *saved.feed_forward, saved.balance_loss);
  copy = {};
  dnorm = sum_rows(context, std::move(dnorm), h);
  // With a parallel residual the gradient so far belongs to the block's input, whose storage norm 1 still reads.
  Tensor partial;
  if (layer_.parallel_residual) partial = pool.take(own * h);
  float* dresidual = layer_.parallel_residual ? partial.data() : saved.residual.data();
  const float* mlp_input = layer_.parallel_residual ? saved.input.data() : saved.residual.data();
  add_norm_gradients(call, at_.norm2_gain, at_.norm2_bias, [&](const NormGradients& norm) {
    kernels.norm_backward(layer_.norm, dresidual, norm, dnorm.data(), saved.output_gradient.data(), mlp_input,
                          saved.norm2_statistics.data(), {weights + at_.norm2_gain, at_offset(weights, at_.norm2_bias)},
                          {own, h});
  });
  saved.norm2_statistics = {};
  dnorm = {};

  const Tensor& attention_gradient = layer_.parallel_residual ? saved.output_gradient : saved.residual;
  Tensor dattention = pool.take(rows * size.query);
  kernels.linear_input_grad(
      dattention.data(), all_rows(context, branch_gradient(call, kAttentionBranch, attention_gradient, copy), h).rows,
      weights + at_.output, {rows, size.query, h});
  copy = {};
  Tensor dqkv = pool.take(rows * size.qkv);
  attend_backward(layer_, call, seat_, dqkv.data(), dattention.data(), saved.attention_output.data(),
                  saved.log_sum_exp.data(), saved.qkv);
  saved.qkv = std::move(dqkv);
  saved.log_sum_exp = {};
  dattention = {};
  if (layer_.rotary_size > 0)
    kernels.rotary(saved.qkv.data(), rotary_of(context), rotary_size(layer_, context.work, size),
                   RotaryDirection::kBackward);
  dnorm = pool.take(rows * h);
  kernels.linear_input_grad(dnorm.data(), saved.qkv.data(), weights + at_.qkv, {rows, h, size.qkv});
  sum_shared_columns(context, kv_sharers_, saved.qkv, size.qkv, size.query);  // needed by the weights' gradients
  dnorm = sum_rows(context, std::move(dnorm), h);
  add_norm_gradients(call, at_.norm1_gain, at_.norm1_bias, [&](const NormGradients& norm) {
    kernels.norm_backward(layer_.norm, saved.input.data(), norm, dnorm.data(), dresidual, saved.input.data(),
                          saved.norm1_statistics.data(), {weights + at_.norm1_gain, at_offset(weights, at_.norm1_bias)},
                          {own, h});
  });
  saved.norm1_statistics = {};
  return std::move(saved.input);
}

void CpuTransformer::weight_grad(const LayerCall& call, LayerSaved& kept) const {
  auto& saved = static_cast<TransformerSaved&>(kept);
  const CpuContext& context = call.context;
  float* gradients = call.gradients;
  const CpuKernelSet& kernels = context.kernels;
  const Sizes size = sizes_of(layer_, context);
  const std::int64_t rows = size.rows, own = size.own, h = layer_.hidden;
  const Tensor& attention_gradient = layer_.parallel_residual ? saved.output_gradient : saved.residual;

  Tensor copy;
  feed_forward_->weight_grad(call, branch_gradient(call, kFeedForwardBranch, saved.output_gradient, copy),
                             saved.norm2_output, *saved.feed_forward);
  copy = {};
  const Tensor& branch = branch_gradient(call, kAttentionBranch, attention_gradient, copy);
  kernels.linear_weight_grad(gradients + at_.output, all_rows(context, branch, h).rows, saved.attention_output.data(),
                             {h, size.query, rows});
  if (layer_.linear_bias)
    add_replicated(context, gradients + at_.output_bias, h,
                   [&](float* bias) { kernels.bias_backward(bias, branch.data(), own, h); });
  kernels.linear_weight_grad(gradients + at_.qkv, saved.qkv.data(), all_rows(context, saved.norm1_output, h).rows,
                             {size.qkv, h, rows});
  if (layer_.qkv_bias) kernels.bias_backward(gradients + at_.qkv_bias, saved.qkv.data(), rows, size.qkv);
}

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_transformer(const TransformerLayer& layer, std::int64_t sequence,
                                               const LayerSeat& seat) {
  return std::make_unique<CpuTransformer>(layer, sequence, seat);
}

}}  // namespace plumb::executor
