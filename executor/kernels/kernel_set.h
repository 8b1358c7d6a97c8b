#pragma once
// The CPU kernels as the layers call them. Each KernelKind (and GEMM form) has one method, which runs the kernel and,
// if there is a log, writes down the call. Layers reach kernels only through this class, so the log holds the calls
// that really ran; a test compares it with layer_kernels().

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/copy_rows.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/images/convolution.h"
#include "kernels/cpu/images/pooling.h"
#include "kernels/cpu/latent_heads.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/rotary.h"
#include "kernels/cpu/router.h"
#include "kernels/cpu/state_spaces/causal_convolution.h"
#include "kernels/cpu/state_spaces/gated_norm.h"
#include "kernels/cpu/state_spaces/state_space.h"
#include "kernels/layer.h"
#include "kernels/optimizer.h"

namespace plumb { inline namespace executor {

/// Gain [C] and bias [C] of a norm (bias null for RMSNorm), and the gradients of both.
struct NormParameters {
  const float* gain = nullptr;
  const float* bias = nullptr;
};
/// Means and reciprocal standard deviations of rows [R]; RMSNorm has no means.
struct NormStatistics {
  float* means = nullptr;
  float* deviations = nullptr;
};
struct NormGradients {
  float* gain = nullptr;
  float* bias = nullptr;
};

class CpuKernelSet {
 public:
  /// `log` may be null; otherwise it must outlive the set, and only one thread may write it.
  explicit CpuKernelSet(std::vector<KernelCall>* log = nullptr) : log_(log) {}

  // The shapes are those of the functions in kernels/cpu, which these methods call.
  void linear_forward(float* y, const float* x, const float* weight, const GemmSize& size) const;
  void linear_input_grad(float* dx, const float* dy, const float* weight, const GemmSize& size) const;
  void linear_weight_grad(float* dweight, const float* dy, const float* x, const GemmSize& size) const;

  /// Products like linear_*() for each expert, of its own rows. In x and y (or dx and dy) the rows of one expert follow
  /// those of the expert before, and so do the experts' weights, [out, in] each. The log has one call of even shares.
  void experts_forward(float* y, const float* x, const float* weights, std::span<const std::int64_t> rows,
                       std::int64_t out, std::int64_t in) const;
  void experts_input_grad(float* dx, const float* dy, const float* weights, std::span<const std::int64_t> rows,
                          std::int64_t in, std::int64_t out) const;
  void experts_weight_grad(float* dweights, const float* dy, const float* x, std::span<const std::int64_t> rows,
                           std::int64_t out, std::int64_t in) const;

  /// Biases of experts, [E, columns], on their rows.
  void experts_bias_forward(float* y, const float* biases, std::span<const std::int64_t> rows,
                            std::int64_t columns) const;
  void experts_bias_backward(float* dbiases, const float* dy, std::span<const std::int64_t> rows,
                             std::int64_t columns) const;

  void router_forward(float* scores, std::int32_t* picks, const RouterSize& size, const float* bias = nullptr) const;
  void router_backward(float* probabilities, const float* weight_gradients, const std::int32_t* picks,
                       const RouterSize& size, bool renormalised, const float* added, std::int64_t tokens_a_row) const;
  void place_rows(float* placed, const float* rows, const std::int32_t* places, const CopyRowsSize& size) const;
  void sum_placed_rows(float* rows, const float* placed, const std::int32_t* places, const float* weights,
                       const CopyRowsSize& size) const;

  void attention_forward(float* output, float* log_sum_exp, const float* qkv, const AttentionSize& size,
                         float* scratch) const;
  void attention_backward(float* dqkv, const float* doutput, const float* qkv, const float* output,
                          const float* log_sum_exp, const AttentionSize& size, float* scratch) const;

  void join_latent_heads(float* qkv, const float* queries, const float* shared, const float* keys_values,
                         const LatentHeads& size) const;
  void split_latent_heads(float* dqueries, float* dshared, float* dkeys_values, const float* dqkv,
                          const LatentHeads& size) const;

  // Attention of slices has no KernelKind, so the log does not have it.
  void attention_slice_forward(float* output, float* log_sum_exp, const float* qkv, const float* keys_values,
                               const AttentionSlice& slice, float* scratch) const;
  void attention_slice_backward(float* dqkv, float* dkeys_values, const float* doutput, const float* qkv,
                                const float* keys_values, const float* output, const float* log_sum_exp,
                                const AttentionSlice& slice, float* scratch) const;

  void norm_forward(NormKind kind, float* y, const NormStatistics& statistics, const float* x,
                    const NormParameters& parameters, const NormSize& size, double epsilon) const;
  void norm_backward(NormKind kind, float* dx, const NormGradients& gradients, const float* dy,
                     const float* residual_gradient, const float* x, const NormStatistics& statistics,
                     const NormParameters& parameters, const NormSize& size) const;

  /// up: [rows, f] or, gated, [rows, 2f]; y: [rows, f].
  void activation_forward(float* y, const float* up, const MlpActivation& of) const;
  void activation_backward(float* up, const float* dy, const MlpActivation& of) const;

  void bias_forward(float* y, const float* bias, std::int64_t rows, std::int64_t columns) const;
  void bias_backward(float* dbias, const float* dy, std::int64_t rows, std::int64_t columns) const;
  void rotary(float* x, const float* table, const RotarySize& size, RotaryDirection direction) const;
  void residual_add(float* z, const float* x, const float* y, std::int64_t rows, std::int64_t columns) const;

  /// tokens: [T], y and dy: [T, h], with T = b*s. positions and dpositions may be null.
  void embedding_forward(float* y, const std::int32_t* tokens, const float* table, const float* positions,
                         const EmbeddingSize& size) const;
  void embedding_backward(float* dtable, float* dpositions, const float* dy, const std::int32_t* tokens,
                          const EmbeddingSize& size) const;

  void convolution_forward(float* y, const float* x, const float* filters, const ConvolutionSize& size,
                           float* scratch) const;
  void convolution_input_grad(float* dx, const float* dy, const float* filters, const ConvolutionSize& size,
                              float* scratch) const;
  void convolution_weight_grad(float* dfilters, const float* dy, const float* x, const ConvolutionSize& size,
                               float* scratch) const;

  /// places: null for average pooling.
  void pooling_forward(PoolingKind kind, float* y, std::int32_t* places, const float* x, const PoolingSize& size) const;
  void pooling_backward(PoolingKind kind, float* dx, const float* dy, const std::int32_t* places,
                        const PoolingSize& size) const;

  void causal_convolution_forward(float* y, const float* x, const float* earlier,
                                  const CausalConvolutionParameters& parameters,
                                  const CausalConvolutionSize& size) const;
  void causal_convolution_backward(float* x, const CausalConvolutionGradients& gradients, float* of_earlier,
                                   const float* dy, const float* earlier, const CausalConvolutionParameters& parameters,
                                   const CausalConvolutionSize& size) const;
  void state_space_forward(float* y, float* states, const StateSpaceInputs& inputs,
                           const StateSpaceParameters& parameters, const StateSpaceSize& size, float* scratch) const;
  void state_space_backward(float* xbc, float* steps, const StateSpaceGradients& gradients, float* of_states,
                            const float* dy, const float* earlier, const StateSpaceParameters& parameters,
                            const StateSpaceSize& size, float* scratch) const;
  void gated_norm_forward(float* out, float* rstd, const float* y, const float* z, const float* gain,
                          const GatedNormSize& size, double epsilon) const;
  void gated_norm_backward(float* dy, float* z, float* dgain, const float* dout, const float* y, const float* rstd,
                           const float* gain, const GatedNormSize& size) const;

  /// x, dy: [rows, columns], mask: [relu_mask_words]
  void relu_forward(float* x, std::uint32_t* mask, std::int64_t rows, std::int64_t columns) const;
  void relu_backward(float* dy, const std::uint32_t* mask, std::int64_t rows, std::int64_t columns) const;
  void dropout(float* y, const float* x, const DropoutKey& key, const DropoutRows& rows, double probability) const;

  /// Dropout of several runs of rows that lie one behind the other, as one call.
  void dropout(float* y, const float* x, const DropoutKey& key, std::span<const DropoutRows> runs,
               double probability) const;
  double squared_error(float* y, const float* targets, std::int64_t rows, std::int64_t columns,
                       float gradient_scale) const;

  double cross_entropy(float* logits, const std::int32_t* targets, std::int64_t rows, std::int64_t columns,
                       float gradient_scale, std::int64_t padding = 0, float softcap = 0) const;
  void adamw_update(float* parameters, float* gradients, float* first_moment, float* second_moment,
                    std::int64_t elements, const AdamW& optimizer, std::int64_t step) const;

 private:
  void note(KernelKind kind, std::initializer_list<std::int64_t> shape) const;
  void note_attention(KernelKind plain, KernelKind latent, const AttentionSize& size) const;
  void note_experts(std::span<const std::int64_t> rows, std::int64_t out, std::int64_t in, GemmForm kind) const;
  void note(KernelKind kind, const ConvolutionSize& size) const;
  void note(KernelKind kind, const CausalConvolutionSize& size) const;
  void note(KernelKind kind, const StateSpaceSize& size) const;
  void note(KernelKind kind, const PoolingSize& size, bool average) const;

  std::vector<KernelCall>* log_;
};

}}  // namespace plumb::executor
