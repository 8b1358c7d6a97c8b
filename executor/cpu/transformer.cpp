// A decoder block on the CPU.

#include <utility>

#include "executor/cpu/layers.h"

namespace plumb {
namespace {

/// Sizes of a block's tensors.
struct Sizes {
  std::int64_t rows;   // T
  std::int64_t query;  // q
  std::int64_t qkv;    // w
  std::int64_t up;     // u
  std::int64_t statistics;
};

Sizes sizes_of(const TransformerLayer& layer, const LayerWork& work) {
  const std::int64_t rows = work.microbatch * work.sequence;
  return {.rows = rows,
          .query = layer.heads * layer.head_size,
          .qkv = (layer.heads + 2 * layer.kv_heads) * layer.head_size,
          .up = layer.mlp == MlpKind::kSwiglu ? 2 * layer.ffn : layer.ffn,
          .statistics = layer.norm == NormKind::kLayerNorm ? 2 * rows : rows};
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

void attend(const TransformerLayer& layer, const CpuContext& context, TransformerSaved& saved,
            SequenceSaved* sequence) {
  if (sequence == nullptr) {
    context.kernels.attention_forward(saved.attention_output.data(), saved.log_sum_exp.data(), saved.qkv.data(),
                                      attention_size(layer, context.work), context.scratch);
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
void attend_backward(const TransformerLayer& layer, const CpuContext& context, float* dqkv, const float* doutput,
                     const TransformerSaved& saved, SequenceSaved* sequence) {
  if (sequence == nullptr) {
    context.kernels.attention_backward(dqkv, doutput, saved.qkv.data(), saved.attention_output.data(),
                                       saved.log_sum_exp.data(), attention_size(layer, context.work), context.scratch);
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

template <class T>
T* at_offset(T* block, std::int64_t offset) {
  return offset < 0 ? nullptr : block + offset;
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

}  // namespace

CpuTransformer::CpuTransformer(const TransformerLayer& transformer, std::int64_t sequence)
    : layer(transformer), at(offsets_of(transformer)) {
  if (layer.rotary_size > 0) rotary = rotary_table(sequence, layer.rotary_size, layer.rope_theta);
}

Tensor CpuTransformer::forward(const CpuContext& context, const float* weights, Tensor input, TransformerSaved& saved,
                               SequenceSaved* sequence) const {
  const CpuKernelSet& kernels = context.kernels;
  TensorPool& pool = *context.pool;
  const Sizes size = sizes_of(layer, context.work);
  const std::int64_t rows = size.rows, h = layer.hidden;

  saved.input = std::move(input);
  saved.norm1_statistics = pool.take(size.statistics);
  saved.norm1_output = pool.take(rows * h);
  kernels.norm_forward(layer.norm, saved.norm1_output.data(), saved.norm1_statistics.data(), saved.input.data(),
                       {weights + at.norm1_gain, at_offset(weights, at.norm1_bias)}, {rows, h}, layer.norm_epsilon);
  saved.qkv = pool.take(rows * size.qkv);
  kernels.linear_forward(saved.qkv.data(), saved.norm1_output.data(), weights + at.qkv, {rows, size.qkv, h});
  if (layer.qkv_bias) kernels.bias_forward(saved.qkv.data(), weights + at.qkv_bias, rows, size.qkv);
  if (layer.rotary_size > 0)
    kernels.rotary(saved.qkv.data(), rotary_from(context.first_token), rotary_size(layer, context.work, size),
                   RotaryDirection::kForward);
  saved.log_sum_exp = pool.take(rows * layer.heads);
  saved.attention_output = pool.take(rows * size.query);
  attend(layer, context, saved, sequence);
  Tensor residual = pool.take(rows * h);
  kernels.linear_forward(residual.data(), saved.attention_output.data(), weights + at.output, {rows, h, size.query});
  if (layer.linear_bias) kernels.bias_forward(residual.data(), weights + at.output_bias, rows, h);
  kernels.residual_add(residual.data(), saved.input.data(), residual.data(), rows, h);

  const float* mlp_input = layer.parallel_residual ? saved.input.data() : residual.data();
  saved.norm2_statistics = pool.take(size.statistics);
  saved.norm2_output = pool.take(rows * h);
  kernels.norm_forward(layer.norm, saved.norm2_output.data(), saved.norm2_statistics.data(), mlp_input,
                       {weights + at.norm2_gain, at_offset(weights, at.norm2_bias)}, {rows, h}, layer.norm_epsilon);
  saved.up = pool.take(rows * size.up);
  kernels.linear_forward(saved.up.data(), saved.norm2_output.data(), weights + at.up, {rows, size.up, h});
  if (layer.linear_bias) kernels.bias_forward(saved.up.data(), weights + at.up_bias, rows, size.up);
  saved.activation = pool.take(rows * layer.ffn);
  kernels.activation_forward(layer, saved.activation.data(), saved.up.data(), rows);
  Tensor output = pool.take(rows * h);
  kernels.linear_forward(output.data(), saved.activation.data(), weights + at.down, {rows, h, layer.ffn});
  if (layer.linear_bias) kernels.bias_forward(output.data(), weights + at.down_bias, rows, h);
  kernels.residual_add(output.data(), residual.data(), output.data(), rows, h);
  if (!layer.parallel_residual) saved.residual = std::move(residual);
  return output;
}

Tensor CpuTransformer::input_grad(const CpuContext& context, const float* weights, float* gradients,
                                  Tensor output_gradient, TransformerSaved& saved, SequenceSaved* sequence) const {
  const CpuKernelSet& kernels = context.kernels;
  TensorPool& pool = *context.pool;
  const Sizes size = sizes_of(layer, context.work);
  const std::int64_t rows = size.rows, h = layer.hidden;
  saved.output_gradient = std::move(output_gradient);

  Tensor dactivation = pool.take(rows * layer.ffn);
  kernels.linear_input_grad(dactivation.data(), saved.output_gradient.data(), weights + at.down, {rows, layer.ffn, h});
  kernels.activation_backward(layer, saved.up.data(), dactivation.data(), rows);
  dactivation = {};
  Tensor dnorm = pool.take(rows * h);
  kernels.linear_input_grad(dnorm.data(), saved.up.data(), weights + at.up, {rows, h, size.up});
  // With a parallel residual the gradient so far belongs to the block's input, whose storage norm 1 still reads.
  Tensor partial;
  if (layer.parallel_residual) partial = pool.take(rows * h);
  float* dresidual = layer.parallel_residual ? partial.data() : saved.residual.data();
  const float* mlp_input = layer.parallel_residual ? saved.input.data() : saved.residual.data();
  kernels.norm_backward(layer.norm, dresidual, {gradients + at.norm2_gain, at_offset(gradients, at.norm2_bias)},
                        dnorm.data(), saved.output_gradient.data(), mlp_input, saved.norm2_statistics.data(),
                        {weights + at.norm2_gain, at_offset(weights, at.norm2_bias)}, {rows, h});
  saved.norm2_statistics = {};
  dnorm = {};

  const float* attention_gradient = layer.parallel_residual ? saved.output_gradient.data() : saved.residual.data();
  Tensor dattention = pool.take(rows * size.query);
  kernels.linear_input_grad(dattention.data(), attention_gradient, weights + at.output, {rows, size.query, h});
  Tensor dqkv = pool.take(rows * size.qkv);
  attend_backward(layer, context, dqkv.data(), dattention.data(), saved, sequence);
  saved.qkv = std::move(dqkv);
  saved.log_sum_exp = {};
  dattention = {};
  if (layer.rotary_size > 0)
    kernels.rotary(saved.qkv.data(), rotary_from(context.first_token), rotary_size(layer, context.work, size),
                   RotaryDirection::kBackward);
  dnorm = pool.take(rows * h);
  kernels.linear_input_grad(dnorm.data(), saved.qkv.data(), weights + at.qkv, {rows, h, size.qkv});
  kernels.norm_backward(layer.norm, saved.input.data(),
                        {gradients + at.norm1_gain, at_offset(gradients, at.norm1_bias)}, dnorm.data(), dresidual,
                        saved.input.data(), saved.norm1_statistics.data(),
                        {weights + at.norm1_gain, at_offset(weights, at.norm1_bias)}, {rows, h});
  saved.norm1_statistics = {};
  return std::move(saved.input);
}

void CpuTransformer::weight_grad(const CpuContext& context, float* gradients, TransformerSaved& saved) const {
  const CpuKernelSet& kernels = context.kernels;
  const Sizes size = sizes_of(layer, context.work);
  const std::int64_t rows = size.rows, h = layer.hidden;
  const Tensor& attention_gradient = layer.parallel_residual ? saved.output_gradient : saved.residual;

  kernels.linear_weight_grad(gradients + at.down, saved.output_gradient.data(), saved.activation.data(),
                             {h, layer.ffn, rows});
  if (layer.linear_bias) kernels.bias_backward(gradients + at.down_bias, saved.output_gradient.data(), rows, h);
  kernels.linear_weight_grad(gradients + at.up, saved.up.data(), saved.norm2_output.data(), {size.up, h, rows});
  if (layer.linear_bias) kernels.bias_backward(gradients + at.up_bias, saved.up.data(), rows, size.up);
  kernels.linear_weight_grad(gradients + at.output, attention_gradient.data(), saved.attention_output.data(),
                             {h, size.query, rows});
  if (layer.linear_bias) kernels.bias_backward(gradients + at.output_bias, attention_gradient.data(), rows, h);
  kernels.linear_weight_grad(gradients + at.qkv, saved.qkv.data(), saved.norm1_output.data(), {size.qkv, h, rows});
  if (layer.qkv_bias) kernels.bias_backward(gradients + at.qkv_bias, saved.qkv.data(), rows, size.qkv);
}

}  // namespace plumb
