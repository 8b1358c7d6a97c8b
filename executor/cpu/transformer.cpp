// A decoder block on the CPU. Symbols as in kernels/layer.h: T tokens, h hidden, q = a*d, w = (a+2k)*d, f feed-forward,
// u = 2f (gated) or f. A gradient takes the storage of a saved tensor that is not needed any more:
//
//   saved tensor   after the input gradient it holds
//   input          the gradient of the layer's input, handed to the layer before (or sent)
//   residual       the gradient between attention and MLP
//   qkv, up        their own gradients
//
// A tensor rank has a/t heads and f/t channels of every row (a, k and f below are its own), and the rows between the
// products that cpu/tensor_parallel.h says: R own rows.

#include <algorithm>
#include <utility>

#include "executor/cpu/context_attention.h"
#include "executor/cpu/layer_kinds.h"
#include "executor/cpu/tensor_parallel.h"

namespace plumb {
namespace {

/// Where a block's parameters lie in its block of weights; gradients lie alike. -1: there is none of that name.
struct TransformerOffsets {
  std::int64_t norm1_gain = -1, norm1_bias = -1, qkv = -1, qkv_bias = -1, output = -1, output_bias = -1;
  std::int64_t norm2_gain = -1, norm2_bias = -1, up = -1, up_bias = -1, down = -1, down_bias = -1;
};

struct TransformerSaved : LayerSaved {
  Tensor input;             // [R, h]
  Tensor norm1_statistics;  // [R] or [2R]
  Tensor norm1_output;      // [R, h]
  Tensor qkv;               // [T, w]; under Ulysses as the all-to-all has made it
  Tensor log_sum_exp;       // [b, a, s]
  Tensor attention_output;  // [T, q]
  Tensor residual;          // [R, h]; empty with a parallel residual
  Tensor norm2_statistics;  // [R] or [2R]
  Tensor norm2_output;      // [R, h]
  Tensor up;                // [T, u]
  Tensor activation;        // [T, f]
  Tensor output_gradient;   // [R, h], between the input and the weight gradient

  std::vector<Tensor*> tensors() override {
    return {&input,    &norm1_statistics, &norm1_output, &qkv, &log_sum_exp, &attention_output,
            &residual, &norm2_statistics, &norm2_output, &up,  &activation,  &output_gradient};
  }
  Tensor* kept_input() override { return &input; }
  std::vector<Tensor*> cheap() override { return {&norm1_output, &norm2_output, &activation}; }
  std::vector<Tensor*> narrowable() override {
    return {&input,        &norm1_output, &qkv,        &attention_output, &residual,
            &norm2_output, &up,           &activation, &output_gradient};
  }
};

/// Sizes of a block's tensors.
struct Sizes {
  std::int64_t rows;   // T
  std::int64_t own;    // R
  std::int64_t query;  // q
  std::int64_t qkv;    // w
  std::int64_t up;     // u
  std::int64_t statistics;
};

Sizes sizes_of(const TransformerLayer& layer, const CpuContext& context) {
  const std::int64_t rows = tokens_of(context.work), own = own_rows(context);
  return {.rows = rows,
          .own = own,
          .query = layer.heads * layer.head_size,
          .qkv = (layer.heads + 2 * layer.kv_heads) * layer.head_size,
          .up = layer.mlp == MlpKind::kSwiglu ? 2 * layer.ffn : layer.ffn,
          .statistics = layer.norm == NormKind::kLayerNorm ? 2 * own : own};
}

AttentionSize attention_size(const TransformerLayer& layer, const LayerWork& work) {
  return {.batch = work.microbatch,
          .sequence = work.sequence,
          .heads = layer.heads,
          .kv_heads = layer.kv_heads,
          .head_size = layer.head_size,
          .window = layer.window};
}

AttentionSlice attention_slice(const TransformerLayer& layer, const CpuContext& context) {
  LayerWork whole = context.work;
  whole.sequence = context.whole_sequence;
  return {.size = attention_size(layer, whole), .first = context.first_token, .count = context.work.sequence};
}

void attend(const TransformerLayer& layer, const CpuContext& context, const ContextSeat& seat, TransformerSaved& saved,
            SequenceSaved* sequence) {
  const AttentionSize size = attention_size(layer, context.work);
  if (seat.ranks > 1 && seat.attention == ContextAttention::kRing) {
    ring_attention_forward(context, size, seat, saved.attention_output.data(), saved.log_sum_exp.data(),
                           saved.qkv.data());
    return;
  }
  if (seat.ranks > 1) {
    saved.qkv = ulysses_attention_forward(context, size, saved.attention_output.data(), saved.log_sum_exp.data(),
                                          saved.qkv.data());
    return;
  }
  if (sequence == nullptr) {
    context.kernels.attention_forward(saved.attention_output.data(), saved.log_sum_exp.data(), saved.qkv.data(), size,
                                      context.scratch);
    return;
  }
  const AttentionSlice slice = attention_slice(layer, context);
  if (sequence->keys_values.empty())
    sequence->keys_values =
        context.pool->take(context.work.microbatch * context.whole_sequence * 2 * layer.kv_heads * layer.head_size);
  keep_keys_values(sequence->keys_values.data(), saved.qkv.data(), slice);
  context.kernels.attention_slice_forward(saved.attention_output.data(), saved.log_sum_exp.data(), saved.qkv.data(),
                                          sequence->keys_values.data(), slice, context.scratch);
}

/// The last slice comes first: when a slice's turn comes, those behind it have added what they owe to its keys and
/// values.
void attend_backward(const TransformerLayer& layer, const CpuContext& context, const ContextSeat& seat, float* dqkv,
                     const float* doutput, const TransformerSaved& saved, SequenceSaved* sequence) {
  const AttentionSize size = attention_size(layer, context.work);
  if (seat.ranks > 1 && seat.attention == ContextAttention::kRing) {
    ring_attention_backward(context, size, seat, dqkv, doutput, saved.qkv.data(), saved.attention_output.data(),
                            saved.log_sum_exp.data());
    return;
  }
  if (seat.ranks > 1) {
    ulysses_attention_backward(context, size, dqkv, doutput, saved.qkv.data(), saved.attention_output.data(),
                               saved.log_sum_exp.data());
    return;
  }
  if (sequence == nullptr) {
    context.kernels.attention_backward(dqkv, doutput, saved.qkv.data(), saved.attention_output.data(),
                                       saved.log_sum_exp.data(), size, context.scratch);
    return;
  }
  const AttentionSlice slice = attention_slice(layer, context);
  if (sequence->gradients.empty()) sequence->gradients = context.pool->take_zeros(sequence->keys_values.elements());
  context.kernels.attention_slice_backward(dqkv, sequence->gradients.data(), doutput, saved.qkv.data(),
                                           sequence->keys_values.data(), saved.attention_output.data(),
                                           saved.log_sum_exp.data(), slice, context.scratch);
  take_keys_values(dqkv, sequence->gradients.data(), slice);
  if (slice.first == 0) *sequence = {};
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
  const std::string up = layer.mlp == MlpKind::kSwiglu ? "gate_up" : "up";
  const auto offset = [&](const std::string& name) { return parameter_offset(layer, name); };
  return {.norm1_gain = offset("norm1.gain"),
          .norm1_bias = offset("norm1.bias"),
          .qkv = offset("qkv.weight"),
          .qkv_bias = offset("qkv.bias"),
          .output = offset("attention_output.weight"),
          .output_bias = offset("attention_output.bias"),
          .norm2_gain = offset("norm2.gain"),
          .norm2_bias = offset("norm2.bias"),
          .up = offset(up + ".weight"),
          .up_bias = offset(up + ".bias"),
          .down = offset("down.weight"),
          .down_bias = offset("down.bias")};
}

class CpuTransformer : public CpuLayer {
 public:
  CpuTransformer(const TransformerLayer& transformer, std::int64_t sequence, const ContextSeat& seat)
      : layer_(transformer), at_(offsets_of(transformer)), seat_(seat), sequence_(sequence) {
    if (layer_.rotary_size == 0) return;
    const std::vector<float> whole = rotary_table(sequence, layer_.rotary_size, layer_.rope_theta);
    const ContextTokens tokens = context_tokens(sequence, seat);
    for (const TokenRange& run : {tokens.first, tokens.second})
      rotary_.insert(rotary_.end(), whole.begin() + run.first * layer_.rotary_size,
                     whole.begin() + (run.first + run.count) * layer_.rotary_size);
  }

  std::unique_ptr<LayerSaved> make_saved() const override { return std::make_unique<TransformerSaved>(); }
  Tensor forward(const LayerCall& call, Tensor input, LayerSaved& kept) const override;
  Tensor input_grad(const LayerCall& call, Tensor output_gradient, LayerSaved& kept) const override;
  void weight_grad(const LayerCall& call, LayerSaved& kept) const override;
  void rebuild_cheap(const LayerCall& call, LayerSaved& kept) const override;
  std::int64_t scratch_elements(const LayerWork& work) const override {
    const AttentionSize size = attention_size(layer_, work);
    if (seat_.ranks == 1) return attention_scratch_elements(size);
    return std::max(attention_scratch_elements(size), ring_attention_scratch_elements(size, sequence_, seat_));
  }

 private:
  /// Norm 1's output and statistics, norm 2's, and the activation, from what they are made of.
  void normalise_input(const LayerCall& call, TransformerSaved& saved) const;
  void normalise_mlp_input(const LayerCall& call, const float* mlp_input, TransformerSaved& saved) const;
  void activate(const LayerCall& call, TransformerSaved& saved) const;

  /// Calls `backward` with where it adds the gradients of a norm's gain and bias, which lie one behind the other.
  template <class Backward>
  void add_norm_gradients(const LayerCall& call, std::int64_t gain, std::int64_t bias, Backward backward) const {
    const std::int64_t h = layer_.hidden;
    add_replicated(call.context, call.gradients + gain, bias < 0 ? h : 2 * h, [&](float* gradients) {
      backward(NormGradients{gradients, bias < 0 ? nullptr : gradients + h});
    });
  }

  const float* rotary_from(std::int64_t token) const { return rotary_.data() + token * layer_.rotary_size; }

  TransformerLayer layer_;
  TransformerOffsets at_;
  ContextSeat seat_;
  std::int64_t sequence_;      // s
  std::vector<float> rotary_;  // rotary_table [s, rotary_size], or its rows of the context rank's tokens
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

void CpuTransformer::activate(const LayerCall& call, TransformerSaved& saved) const {
  const std::int64_t rows = saved.up.elements() / (layer_.mlp == MlpKind::kSwiglu ? 2 * layer_.ffn : layer_.ffn);
  saved.activation = call.context.pool->take(rows * layer_.ffn);
  call.context.kernels.activation_forward(layer_, saved.activation.data(), saved.up.data(), rows);
}

void CpuTransformer::rebuild_cheap(const LayerCall& call, LayerSaved& kept) const {
  auto& saved = static_cast<TransformerSaved&>(kept);
  normalise_input(call, saved);
  normalise_mlp_input(call, layer_.parallel_residual ? saved.input.data() : saved.residual.data(), saved);
  activate(call, saved);
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
    kernels.rotary(saved.qkv.data(), rotary_from(context.first_token), rotary_size(layer_, context.work, size),
                   RotaryDirection::kForward);
  saved.log_sum_exp = pool.take(rows * layer_.heads);
  saved.attention_output = pool.take(rows * size.query);
  attend(layer_, context, seat_, saved, call.sequence);
  Tensor residual = pool.take(rows * h);
  kernels.linear_forward(residual.data(), saved.attention_output.data(), weights + at_.output, {rows, h, size.query});
  residual = sum_rows(context, std::move(residual), h);
  if (layer_.linear_bias) kernels.bias_forward(residual.data(), weights + at_.output_bias, own, h);
  kernels.residual_add(residual.data(), saved.input.data(), residual.data(), own, h);

  const float* mlp_input = layer_.parallel_residual ? saved.input.data() : residual.data();
  saved.norm2_statistics = pool.take(size.statistics);
  normalise_mlp_input(call, mlp_input, saved);
  saved.up = pool.take(rows * size.up);
  kernels.linear_forward(saved.up.data(), all_rows(context, saved.norm2_output, h).rows, weights + at_.up,
                         {rows, size.up, h});
  if (layer_.linear_bias) kernels.bias_forward(saved.up.data(), weights + at_.up_bias, rows, size.up);
  activate(call, saved);
  Tensor output = pool.take(rows * h);
  kernels.linear_forward(output.data(), saved.activation.data(), weights + at_.down, {rows, h, layer_.ffn});
  output = sum_rows(context, std::move(output), h);
  if (layer_.linear_bias) kernels.bias_forward(output.data(), weights + at_.down_bias, own, h);
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

  Tensor dactivation = pool.take(rows * layer_.ffn);
  kernels.linear_input_grad(dactivation.data(), all_rows(context, saved.output_gradient, h).rows, weights + at_.down,
                            {rows, layer_.ffn, h});
  kernels.activation_backward(layer_, saved.up.data(), dactivation.data(), rows);
  dactivation = {};
  Tensor dnorm = pool.take(rows * h);
  kernels.linear_input_grad(dnorm.data(), saved.up.data(), weights + at_.up, {rows, h, size.up});
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
  kernels.linear_input_grad(dattention.data(), all_rows(context, attention_gradient, h).rows, weights + at_.output,
                            {rows, size.query, h});
  Tensor dqkv = pool.take(rows * size.qkv);
  attend_backward(layer_, context, seat_, dqkv.data(), dattention.data(), saved, call.sequence);
  saved.qkv = std::move(dqkv);
  saved.log_sum_exp = {};
  dattention = {};
  if (layer_.rotary_size > 0)
    kernels.rotary(saved.qkv.data(), rotary_from(context.first_token), rotary_size(layer_, context.work, size),
                   RotaryDirection::kBackward);
  dnorm = pool.take(rows * h);
  kernels.linear_input_grad(dnorm.data(), saved.qkv.data(), weights + at_.qkv, {rows, h, size.qkv});
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

  const auto add_bias = [&](std::int64_t offset, const Tensor& gradient) {
    if (!layer_.linear_bias) return;
    add_replicated(context, gradients + offset, h,
                   [&](float* bias) { kernels.bias_backward(bias, gradient.data(), own, h); });
  };
  kernels.linear_weight_grad(gradients + at_.down, all_rows(context, saved.output_gradient, h).rows,
                             saved.activation.data(), {h, layer_.ffn, rows});
  add_bias(at_.down_bias, saved.output_gradient);
  kernels.linear_weight_grad(gradients + at_.up, saved.up.data(), all_rows(context, saved.norm2_output, h).rows,
                             {size.up, h, rows});
  if (layer_.linear_bias) kernels.bias_backward(gradients + at_.up_bias, saved.up.data(), rows, size.up);
  kernels.linear_weight_grad(gradients + at_.output, all_rows(context, attention_gradient, h).rows,
                             saved.attention_output.data(), {h, size.query, rows});
  add_bias(at_.output_bias, attention_gradient);
  kernels.linear_weight_grad(gradients + at_.qkv, saved.qkv.data(), all_rows(context, saved.norm1_output, h).rows,
                             {size.qkv, h, rows});
  if (layer_.qkv_bias) kernels.bias_backward(gradients + at_.qkv_bias, saved.qkv.data(), rows, size.qkv);
}

}  // namespace

std::unique_ptr<CpuLayer> make_cpu_transformer(const TransformerLayer& layer, std::int64_t sequence,
                                               const ContextSeat& seat) {
  return std::make_unique<CpuTransformer>(layer, sequence, seat);
}

}  // namespace plumb
