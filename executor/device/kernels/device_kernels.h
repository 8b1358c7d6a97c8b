#pragma once
// The GPU kernels as the layers of a device call them: one method a kernel, which enqueues it on a stream and returns.
// "Stored" tensors hold activations (and the matrices that multiply them) in one format, fp32 or 16 bits, that the set
// was made for; they are void here. What is fp32 whatever that format is says so by its type.
//
// device/kernels/simt_kernels.h makes a set of anything that can launch a body of kernels/simt and multiply matrices: a
// GPU's stream, or the host in tests.

#include <cstdint>

#include "executor/device/kernels/device_context_kernels.h"
#include "executor/device/kernels/device_expert_kernels.h"
#include "executor/device/kernels/device_image_kernels.h"
#include "executor/device/kernels/device_update_kernels.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/losses/vocab_parallel_cross_entropy.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/rotary.h"
#include "kernels/layer/layer.h"
#include "kernels/step_numbers.h"

namespace plumb { inline namespace executor {

/// Gain and bias [C] of a norm, and what its forward notes of each row [R]; null bias and mean: RMSNorm.
struct DeviceNorm {
  const float* gain = nullptr;
  const float* bias = nullptr;
  float* mean = nullptr;
  float* rstd = nullptr;
};

/// The bias [out] of a linear layer: in fp32, and as it is stored beside the matrices. Null: none.
struct DeviceBias {
  const float* values = nullptr;
  const void* stored = nullptr;
};

class DeviceKernels : public DeviceExpertKernels,
                      public DeviceContextKernels,
                      public DeviceUpdateKernels,
                      public DeviceImageKernels {
 public:
  /// Between tensors of one device, or one and DeviceMachine::allocate_on_host()'s.
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void fill_zero(float* to, std::int64_t elements) = 0;
  /// to = from, which is stored.
  virtual void widen(float* to, const void* from, std::int64_t elements) = 0;

  /// to = from: columns of stored rows, of `to_width` and `from_width` channels in memory.
  virtual void copy_columns(void* to, std::int64_t to_width, const void* from, std::int64_t from_width,
                            const NormSize& size) = 0;

  // Products with weights [out, in], as kernels/cpu/products/gemm.h has them; weight gradients are added up in fp32.
  virtual void linear_forward(void* y, const void* x, const void* weight, const GemmSize& size) = 0;
  virtual void linear_input_grad(void* dx, const void* dy, const void* weight, const GemmSize& size) = 0;
  virtual void linear_weight_grad(float* dweight, const void* dy, const void* x, const GemmSize& size) = 0;

  // Products with what follows them. Either they are the product and the kernels below one behind the other: each
  // result is rounded as it is stored, and the bias is the fp32 one. Or, where a machine's products take it in
  // (cuda/product_epilogue.h), sums stay in fp32 until the end and the bias is the stored one: in fp32 the same bits
  // but for GELU's tanh and the order of a bias gradient's sum, in 16 bits fewer roundings.

  /// y = x W^T + bias
  virtual void linear_bias_forward(void* y, const void* x, const void* weight, const DeviceBias& bias,
                                   const GemmSize& size) = 0;
  /// up = x W^T + bias; y = GELU by tanh of it. Both [m, n]
  virtual void linear_gelu_forward(void* y, void* up, const void* x, const void* weight, const DeviceBias& bias,
                                   const GemmSize& size) = 0;
  /// dW += dy^T x, dbias += sums of dy over its rows. dbias: [m]
  virtual void linear_bias_weight_grad(float* dweight, float* dbias, const void* dy, const void* x,
                                       const GemmSize& size) = 0;

  /// sum = x + residual where there is one (null: `sum` is not written), y = norm of that. x, residual, sum, y: [R, C]
  virtual void norm_forward(void* y, void* sum, const void* x, const void* residual, const DeviceNorm& norm,
                            const NormSize& size, float epsilon) = 0;
  /// dx = past + the norm's gradient, dgain and dbias (null: none) += theirs. dx may be dy, past (null: zeros) or x.
  virtual void norm_backward(void* dx, float* dgain, float* dbias, const void* dy, const void* past, const void* x,
                             const DeviceNorm& norm, const NormSize& size) = 0;

  /// up: [rows, f] or, gated, [rows, 2f]; y: [rows, f]. The backward replaces `up` by its gradient.
  virtual void activation_forward(const TransformerLayer& layer, void* y, const void* up, std::int64_t rows) = 0;
  virtual void activation_backward(const TransformerLayer& layer, void* up, const void* dy, std::int64_t rows) = 0;

  virtual void bias_forward(void* y, const float* bias, std::int64_t rows, std::int64_t columns) = 0;
  virtual void bias_backward(float* dbias, const void* dy, std::int64_t rows, std::int64_t columns) = 0;
  /// z = x + (y + bias); a null bias counts as zeros.
  virtual void residual_add(void* z, const void* x, const void* y, const float* bias, std::int64_t rows,
                            std::int64_t columns) = 0;
  /// table: fp32 [s, rotary_size]
  virtual void rotary(void* x, const float* table, const RotarySize& size, RotaryDirection direction) = 0;

  /// y = residual (null: zeros) + dropout of x; y may be either. The replay that `numbers` (null: the key) names draws
  /// the mask, here and of attention's probabilities.
  virtual void dropout(void* y, const void* x, const void* residual, const DropoutKey& key, const DropoutRows& rows,
                       double probability, const StepNumbers* numbers) = 0;

  virtual void attention_forward(void* output, float* log_sum_exp, const void* qkv, const AttentionSize& size,
                                 const StepNumbers* numbers) = 0;
  /// products: fp32 scratch [b, a, s]
  virtual void attention_backward(void* dqkv, float* products, const void* doutput, const void* qkv, const void* output,
                                  const float* log_sum_exp, const AttentionSize& size, const StepNumbers* numbers) = 0;

  /// positions and dpositions may be null.
  virtual void embedding_forward(void* y, const std::int32_t* tokens, const void* table, const void* positions,
                                 const EmbeddingLayer& layer, const LayerWork& work) = 0;
  virtual void embedding_backward(float* dtable, float* dpositions, const void* dy, const std::int32_t* tokens,
                                  const EmbeddingLayer& layer, const LayerWork& work) = 0;

  /// losses: [rows]; the logits become their gradient times `gradient_scale` and the loss scale (null: 1).
  virtual void cross_entropy(float* losses, void* logits, const std::int32_t* targets, std::int64_t rows,
                             std::int64_t columns, float gradient_scale, const float* loss_scale) = 0;

  /// The same where a tensor group has the vocabulary: parts [3, T] of the own columns, and all ranks' to the end.
  virtual void cross_entropy_parts(float* parts, const void* logits, const std::int32_t* targets,
                                   const VocabPart& part) = 0;
  virtual void cross_entropy_from_parts(float* losses, void* logits, const float* all_parts, int ranks,
                                        const std::int32_t* targets, const VocabPart& part, float gradient_scale,
                                        const float* loss_scale) = 0;

  /// sum = x + y, in fp32.
  virtual void add_gradients(float* sum, const float* x, const float* y, std::int64_t elements) = 0;
};

}}  // namespace plumb::executor
