#include "executor/kernels/kernel_set.h"

#include <numeric>

#include "kernels/cpu/embedding.h"
#include "kernels/cpu/losses/cross_entropy.h"
#include "kernels/cpu/losses/squared_error.h"
#include "kernels/cpu/optimizers/adamw.h"
#include "kernels/cpu/products/bias.h"
#include "kernels/cpu/relu.h"
#include "kernels/cpu/residual.h"

namespace plumb { inline namespace executor {
namespace {

std::int64_t form(GemmForm value) {
  return static_cast<std::int64_t>(value);
}
std::int64_t is_layer_norm(NormKind kind) {
  return kind == NormKind::kLayerNorm ? 1 : 0;
}

}  // namespace

void CpuKernelSet::note(KernelKind kind, std::initializer_list<std::int64_t> shape) const {
  if (log_ != nullptr) log_->push_back(kernel_call(kind, shape));
}

void CpuKernelSet::note(KernelKind kind, const ConvolutionSize& size) const {
  note(kind, {size.images, size.height, size.width, size.channels, size.filters, size.kernel, size.stride, size.padding,
              size.groups});
}

void CpuKernelSet::note(KernelKind kind, const PoolingSize& size, bool average) const {
  note(kind, {size.images, size.height, size.width, size.channels, size.kernel, size.stride, average ? 1 : 0});
}

void CpuKernelSet::note(KernelKind kind, const CausalConvolutionSize& size) const {
  note(kind, {size.batch, size.sequence, size.channels, size.taps});
}

void CpuKernelSet::note(KernelKind kind, const StateSpaceSize& size) const {
  note(kind, {size.batch, size.sequence, size.heads, size.head_size, size.groups, size.state_size, size.chunk});
}

void CpuKernelSet::linear_forward(float* y, const float* x, const float* weight, const GemmSize& size) const {
  note(KernelKind::kGemm, {size.m, size.n, size.k, 1, form(GemmForm::kForward)});
  plumb::linear_forward(y, x, weight, size);
}

void CpuKernelSet::linear_input_grad(float* dx, const float* dy, const float* weight, const GemmSize& size) const {
  note(KernelKind::kGemm, {size.m, size.n, size.k, 1, form(GemmForm::kInputGrad)});
  plumb::linear_input_grad(dx, dy, weight, size);
}

void CpuKernelSet::linear_weight_grad(float* dweight, const float* dy, const float* x, const GemmSize& size) const {
  note(KernelKind::kGemm, {size.m, size.n, size.k, 1, form(GemmForm::kWeightGrad)});
  plumb::linear_weight_grad(dweight, dy, x, size);
}

void CpuKernelSet::note_experts(std::span<const std::int64_t> rows, std::int64_t out, std::int64_t in,
                                GemmForm kind) const {
  const auto experts = static_cast<std::int64_t>(rows.size());
  const std::int64_t even = (std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) + experts - 1) / experts;
  if (kind == GemmForm::kWeightGrad)
    note(KernelKind::kGemm, {out, in, even, experts, form(kind)});
  else
    note(KernelKind::kGemm, {even, out, in, experts, form(kind)});
}

void CpuKernelSet::experts_forward(float* y, const float* x, const float* weights, std::span<const std::int64_t> rows,
                                   std::int64_t out, std::int64_t in) const {
  note_experts(rows, out, in, GemmForm::kForward);
  for (const std::int64_t count : rows) {
    if (count > 0) plumb::linear_forward(y, x, weights, {count, out, in});
    y += count * out;
    x += count * in;
    weights += out * in;
  }
}

void CpuKernelSet::experts_input_grad(float* dx, const float* dy, const float* weights,
                                      std::span<const std::int64_t> rows, std::int64_t in, std::int64_t out) const {
  note_experts(rows, in, out, GemmForm::kInputGrad);
  for (const std::int64_t count : rows) {
    if (count > 0) plumb::linear_input_grad(dx, dy, weights, {count, in, out});
    dx += count * in;
    dy += count * out;
    weights += out * in;
  }
}

void CpuKernelSet::experts_weight_grad(float* dweights, const float* dy, const float* x,
                                       std::span<const std::int64_t> rows, std::int64_t out, std::int64_t in) const {
  note_experts(rows, out, in, GemmForm::kWeightGrad);
  for (const std::int64_t count : rows) {
    if (count > 0) plumb::linear_weight_grad(dweights, dy, x, {out, in, count});
    dweights += out * in;
    dy += count * out;
    x += count * in;
  }
}

void CpuKernelSet::experts_bias_forward(float* y, const float* biases, std::span<const std::int64_t> rows,
                                        std::int64_t columns) const {
  note(KernelKind::kBiasForward, {std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), columns});
  for (const std::int64_t count : rows) {
    plumb::bias_forward(y, biases, count, columns);
    y += count * columns;
    biases += columns;
  }
}

void CpuKernelSet::experts_bias_backward(float* dbiases, const float* dy, std::span<const std::int64_t> rows,
                                         std::int64_t columns) const {
  note(KernelKind::kBiasBackward, {std::accumulate(rows.begin(), rows.end(), std::int64_t{0}), columns});
  for (const std::int64_t count : rows) {
    plumb::bias_backward(dbiases, dy, count, columns);
    dy += count * columns;
    dbiases += columns;
  }
}

void CpuKernelSet::router_forward(float* scores, std::int32_t* picks, const RouterSize& size, const float* bias) const {
  note(KernelKind::kRouter, {size.tokens, size.experts, size.picks});
  plumb::router_forward(scores, picks, size, bias);
}

void CpuKernelSet::router_backward(float* probabilities, const float* weight_gradients, const std::int32_t* picks,
                                   const RouterSize& size, bool renormalised, const float* added,
                                   std::int64_t tokens_a_row) const {
  note(KernelKind::kRouter, {size.tokens, size.experts, size.picks});
  plumb::router_backward(probabilities, weight_gradients, picks, size, renormalised, added, tokens_a_row);
}

void CpuKernelSet::place_rows(float* placed, const float* rows, const std::int32_t* places,
                              const CopyRowsSize& size) const {
  note(KernelKind::kCopyRows, {size.tokens * size.picks, size.columns});
  plumb::place_rows(placed, rows, places, size);
}

void CpuKernelSet::sum_placed_rows(float* rows, const float* placed, const std::int32_t* places, const float* weights,
                                   const CopyRowsSize& size) const {
  note(KernelKind::kCopyRows, {size.tokens * size.picks, size.columns});
  plumb::sum_placed_rows(rows, placed, places, weights, size);
}

void CpuKernelSet::note_attention(KernelKind plain, KernelKind latent, const AttentionSize& size) const {
  if (size.value_size > 0)
    note(latent, {size.batch, size.sequence, size.heads, size.head_size, size.value_size, size.window});
  else
    note(plain, {size.batch, size.sequence, size.heads, size.kv_heads, size.head_size, size.window});
}

void CpuKernelSet::attention_forward(float* output, float* log_sum_exp, const float* qkv, const AttentionSize& size,
                                     float* scratch) const {
  note_attention(KernelKind::kAttentionForward, KernelKind::kLatentAttentionForward, size);
  plumb::attention_forward(output, log_sum_exp, qkv, size, scratch);
}

void CpuKernelSet::attention_backward(float* dqkv, const float* doutput, const float* qkv, const float* output,
                                      const float* log_sum_exp, const AttentionSize& size, float* scratch) const {
  note_attention(KernelKind::kAttentionBackward, KernelKind::kLatentAttentionBackward, size);
  plumb::attention_backward(dqkv, doutput, qkv, output, log_sum_exp, size, scratch);
}

void CpuKernelSet::join_latent_heads(float* qkv, const float* queries, const float* shared, const float* keys_values,
                                     const LatentHeads& size) const {
  note(KernelKind::kJoinHeads, {size.rows, size.heads, size.head_size, size.shared, size.value_size});
  plumb::join_latent_heads(qkv, queries, shared, keys_values, size);
}

void CpuKernelSet::split_latent_heads(float* dqueries, float* dshared, float* dkeys_values, const float* dqkv,
                                      const LatentHeads& size) const {
  note(KernelKind::kSplitHeads, {size.rows, size.heads, size.head_size, size.shared, size.value_size});
  plumb::split_latent_heads(dqueries, dshared, dkeys_values, dqkv, size);
}

void CpuKernelSet::attention_slice_forward(float* output, float* log_sum_exp, const float* qkv,
                                           const float* keys_values, const AttentionSlice& slice,
                                           float* scratch) const {
  plumb::attention_slice_forward(output, log_sum_exp, qkv, keys_values, slice, scratch);
}

void CpuKernelSet::attention_slice_backward(float* dqkv, float* dkeys_values, const float* doutput, const float* qkv,
                                            const float* keys_values, const float* output, const float* log_sum_exp,
                                            const AttentionSlice& slice, float* scratch) const {
  plumb::attention_slice_backward(dqkv, dkeys_values, doutput, qkv, keys_values, output, log_sum_exp, slice, scratch);
}

void CpuKernelSet::norm_forward(NormKind kind, float* y, const NormStatistics& statistics, const float* x,
                                const NormParameters& parameters, const NormSize& size, double epsilon) const {
  note(KernelKind::kNormForward, {size.rows, size.columns, is_layer_norm(kind)});
  if (kind == NormKind::kRmsNorm)
    rms_norm_forward(y, statistics.deviations, x, parameters.gain, size, static_cast<float>(epsilon));
  else
    layer_norm_forward(y, statistics.means, statistics.deviations, x, parameters.gain, parameters.bias, size,
                       static_cast<float>(epsilon));
}

void CpuKernelSet::norm_backward(NormKind kind, float* dx, const NormGradients& gradients, const float* dy,
                                 const float* residual_gradient, const float* x, const NormStatistics& statistics,
                                 const NormParameters& parameters, const NormSize& size) const {
  note(KernelKind::kNormBackward, {size.rows, size.columns, is_layer_norm(kind)});
  if (kind == NormKind::kRmsNorm)
    rms_norm_backward(dx, gradients.gain, dy, residual_gradient, x, statistics.deviations, parameters.gain, size);
  else
    layer_norm_backward(dx, gradients.gain, gradients.bias, dy, residual_gradient, x, statistics.means,
                        statistics.deviations, parameters.gain, size);
}

void CpuKernelSet::activation_forward(float* y, const float* up, const MlpActivation& of) const {
  note(KernelKind::kActivationForward, {of.rows, of.columns, of.gated ? 1 : 0});
  if (of.gated)
    swiglu_forward(y, up, {of.rows, of.columns});
  else
    gelu_forward(y, up, {of.rows, of.columns}, of.exact_gelu);
}

void CpuKernelSet::activation_backward(float* up, const float* dy, const MlpActivation& of) const {
  note(KernelKind::kActivationBackward, {of.rows, of.columns, of.gated ? 1 : 0});
  if (of.gated)
    swiglu_backward(up, dy, {of.rows, of.columns});
  else
    gelu_backward(up, dy, {of.rows, of.columns}, of.exact_gelu);
}

void CpuKernelSet::bias_forward(float* y, const float* bias, std::int64_t rows, std::int64_t columns) const {
  note(KernelKind::kBiasForward, {rows, columns});
  plumb::bias_forward(y, bias, rows, columns);
}

void CpuKernelSet::bias_backward(float* dbias, const float* dy, std::int64_t rows, std::int64_t columns) const {
  note(KernelKind::kBiasBackward, {rows, columns});
  plumb::bias_backward(dbias, dy, rows, columns);
}

void CpuKernelSet::rotary(float* x, const float* table, const RotarySize& size, RotaryDirection direction) const {
  note(KernelKind::kRotary, {size.tokens, size.heads, size.rotary_size});
  plumb::rotary(x, table, size, direction);
}

void CpuKernelSet::residual_add(float* z, const float* x, const float* y, std::int64_t rows,
                                std::int64_t columns) const {
  note(KernelKind::kResidualAdd, {rows, columns});
  plumb::residual_add(z, x, y, rows, columns);
}

void CpuKernelSet::embedding_forward(float* y, const std::int32_t* tokens, const float* table, const float* positions,
                                     const EmbeddingSize& size) const {
  note(KernelKind::kEmbeddingForward, {size.tokens, size.columns, positions != nullptr ? 1 : 0});
  plumb::embedding_forward(y, tokens, table, positions, size);
}

void CpuKernelSet::embedding_backward(float* dtable, float* dpositions, const float* dy, const std::int32_t* tokens,
                                      const EmbeddingSize& size) const {
  note(KernelKind::kEmbeddingBackward, {size.tokens, size.columns, dpositions != nullptr ? 1 : 0});
  plumb::embedding_backward(dtable, dpositions, dy, tokens, size);
}

void CpuKernelSet::convolution_forward(float* y, const float* x, const float* filters, const ConvolutionSize& size,
                                       float* scratch) const {
  note(KernelKind::kConvolutionForward, size);
  plumb::convolution_forward(y, x, filters, size, scratch);
}

void CpuKernelSet::convolution_input_grad(float* dx, const float* dy, const float* filters, const ConvolutionSize& size,
                                          float* scratch) const {
  note(KernelKind::kConvolutionInputGrad, size);
  plumb::convolution_input_grad(dx, dy, filters, size, scratch);
}

void CpuKernelSet::convolution_weight_grad(float* dfilters, const float* dy, const float* x,
                                           const ConvolutionSize& size, float* scratch) const {
  note(KernelKind::kConvolutionWeightGrad, size);
  plumb::convolution_weight_grad(dfilters, dy, x, size, scratch);
}

void CpuKernelSet::pooling_forward(PoolingKind kind, float* y, std::int32_t* places, const float* x,
                                   const PoolingSize& size) const {
  const bool average = kind == PoolingKind::kAverage;
  note(KernelKind::kPoolingForward, size, average);
  if (average)
    average_pooling_forward(y, x, size);
  else
    max_pooling_forward(y, places, x, size);
}

void CpuKernelSet::pooling_backward(PoolingKind kind, float* dx, const float* dy, const std::int32_t* places,
                                    const PoolingSize& size) const {
  const bool average = kind == PoolingKind::kAverage;
  note(KernelKind::kPoolingBackward, size, average);
  if (average)
    average_pooling_backward(dx, dy, size);
  else
    max_pooling_backward(dx, dy, places, size);
}

void CpuKernelSet::causal_convolution_forward(float* y, const float* x, const float* earlier,
                                              const CausalConvolutionParameters& parameters,
                                              const CausalConvolutionSize& size) const {
  note(KernelKind::kCausalConvolutionForward, size);
  plumb::causal_convolution_forward(y, x, earlier, parameters, size);
}

void CpuKernelSet::causal_convolution_backward(float* x, const CausalConvolutionGradients& gradients, float* of_earlier,
                                               const float* dy, const float* earlier,
                                               const CausalConvolutionParameters& parameters,
                                               const CausalConvolutionSize& size) const {
  note(KernelKind::kCausalConvolutionBackward, size);
  plumb::causal_convolution_backward(x, gradients, of_earlier, dy, earlier, parameters, size);
}

void CpuKernelSet::state_space_forward(float* y, float* states, const StateSpaceInputs& inputs,
                                       const StateSpaceParameters& parameters, const StateSpaceSize& size,
                                       float* scratch) const {
  note(KernelKind::kStateSpaceForward, size);
  plumb::state_space_forward(y, states, inputs, parameters, size, scratch);
}

void CpuKernelSet::state_space_backward(float* xbc, float* steps, const StateSpaceGradients& gradients,
                                        float* of_states, const float* dy, const float* earlier,
                                        const StateSpaceParameters& parameters, const StateSpaceSize& size,
                                        float* scratch) const {
  note(KernelKind::kStateSpaceBackward, size);
  plumb::state_space_backward(xbc, steps, gradients, of_states, dy, earlier, parameters, size, scratch);
}

void CpuKernelSet::gated_norm_forward(float* out, float* rstd, const float* y, const float* z, const float* gain,
                                      const GatedNormSize& size, double epsilon) const {
  note(KernelKind::kGatedNormForward, {size.rows, size.columns, size.groups});
  plumb::gated_norm_forward(out, rstd, y, z, gain, size, static_cast<float>(epsilon));
}

void CpuKernelSet::gated_norm_backward(float* dy, float* z, float* dgain, const float* dout, const float* y,
                                       const float* rstd, const float* gain, const GatedNormSize& size) const {
  note(KernelKind::kGatedNormBackward, {size.rows, size.columns, size.groups});
  plumb::gated_norm_backward(dy, z, dgain, dout, y, rstd, gain, size);
}

void CpuKernelSet::relu_forward(float* x, std::uint32_t* mask, std::int64_t rows, std::int64_t columns) const {
  note(KernelKind::kReluForward, {rows, columns});
  plumb::relu_forward(x, mask, rows * columns);
}

void CpuKernelSet::relu_backward(float* dy, const std::uint32_t* mask, std::int64_t rows, std::int64_t columns) const {
  note(KernelKind::kReluBackward, {rows, columns});
  plumb::relu_backward(dy, mask, rows * columns);
}

void CpuKernelSet::dropout(float* y, const float* x, const DropoutKey& key, const DropoutRows& rows,
                           double probability) const {
  note(KernelKind::kDropout, {rows.count * rows.tokens, rows.columns});
  plumb::dropout(y, x, key, rows, probability);
}

void CpuKernelSet::dropout(float* y, const float* x, const DropoutKey& key, std::span<const DropoutRows> runs,
                           double probability) const {
  std::int64_t rows = 0, columns = 0;
  for (const DropoutRows& run : runs) {
    plumb::dropout(y + rows * run.columns, x + rows * run.columns, key, run, probability);
    rows += run.count * run.tokens;
    columns = run.columns;
  }
  note(KernelKind::kDropout, {rows, columns});
}

double CpuKernelSet::squared_error(float* y, const float* targets, std::int64_t rows, std::int64_t columns,
                                   float gradient_scale) const {
  note(KernelKind::kSquaredError, {rows, columns});
  return plumb::squared_error(y, targets, rows, columns, gradient_scale);
}

double CpuKernelSet::cross_entropy(float* logits, const std::int32_t* targets, std::int64_t rows, std::int64_t columns,
                                   float gradient_scale, std::int64_t padding, float softcap) const {
  note(KernelKind::kCrossEntropy, {rows, columns});
  return plumb::cross_entropy(logits, targets, rows, columns, gradient_scale, padding, softcap);
}

void CpuKernelSet::adamw_update(float* parameters, float* gradients, float* first_moment, float* second_moment,
                                std::int64_t elements, const AdamW& optimizer, std::int64_t step) const {
  note(KernelKind::kAdamW, {elements});
  plumb::adamw_update(parameters, gradients, first_moment, second_moment, elements, optimizer, step);
}

}}  // namespace plumb::executor
