#pragma once
// The GPU kernels as the layers of a device call them: each kernel is a method, which enqueues it on a stream and
// returns. "Stored" tensors hold activations (and the matrices that multiply them) in one format, fp32 or 16 bits, for
// which the set of kernels was made; their type is void here. A tensor that is fp32 whatever that format is has the
// type float.
//
// device/kernels/simt_kernels.h makes a set from anything that can launch a body of kernels/simt and multiply matrices:
// a GPU's stream, or the host in tests.

#include <cstdint>

#include "executor/kernels/device_context_kernels.h"
#include "executor/kernels/device_expert_kernels.h"
#include "executor/kernels/device_image_kernels.h"
#include "executor/kernels/device_state_space_kernels.h"
#include "executor/kernels/device_update_kernels.h"
#include "kernels/cpu/activation.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/losses/vocab_parallel_cross_entropy.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/rotary.h"
#include "kernels/layer.h"
#include "kernels/step_numbers.h"

namespace plumb { inline namespace executor {

/// Gain and bias [C] of a norm, and the statistics that its forward keeps of each row [R]. Null bias and mean: RMSNorm.
struct DeviceNorm {
  const float* gain = nullptr;
  const float* bias = nullptr;
  float* mean = nullptr;
  float* rstd = nullptr;
};

/// The bias [out] of a linear layer, in fp32 and in the format of the matrices. Null: none.
struct DeviceBias {
  const float* values = nullptr;
  const void* stored = nullptr;
};

class DeviceKernels : public DeviceExpertKernels,
                      public DeviceContextKernels,
                      public DeviceUpdateKernels,
                      public DeviceImageKernels,
                      public DeviceStateSpaceKernels {
 public:
  /// Copies between tensors of one device, or between one and memory of DeviceMachine::allocate_on_host().
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void fill_zero(float* to, std::int64_t elements) = 0;
  /// to = from, widened from its stored format.
  virtual void widen(float* to, const void* from, std::int64_t elements) = 0;

  /// to = from for columns of stored rows, whose rows have `to_width` and `from_width` channels in memory.
  virtual void copy_columns(void* to, std::int64_t to_width, const void* from, std::int64_t from_width,
                            const NormSize& size) = 0;

  // Products with weights [out, in], as in kernels/cpu/products/gemm.h; weight gradients are added up in fp32.
  virtual void linear_forward(void* y, const void* x, const void* weight, const GemmSize& size) = 0;
  virtual void linear_input_grad(void* dx, const void* dy, const void* weight, const GemmSize& size) = 0;
  virtual void linear_weight_grad(float* dweight, const void* dy, const void* x, const GemmSize& size) = 0;

  // Products together with the operation that follows them. They run in one of two ways. Either the product is followed
  // by the kernels below: each result is rounded to the stored format, and the bias is the fp32 one. Or, where a
  // machine's products include the operation (cuda/product_epilogue.h), sums stay in fp32 until the end and the bias is
  // the stored one. In fp32 the bits are the same except for GELU's tanh and the order of a bias gradient's sum; in 16
  // bits there are fewer roundings.

  /// y = x W^T + bias
  virtual void linear_bias_forward(void* y, const void* x, const void* weight, const DeviceBias& bias,
                                   const GemmSize& size) = 0;
  /// up = x W^T + bias, y = GELU by tanh of up. up, y: [m, n]
  virtual void linear_gelu_forward(void* y, void* up, const void* x, const void* weight, const DeviceBias& bias,
                                   const GemmSize& size) = 0;
  /// dW += dy^T x, dbias += sums of dy over its rows. dbias: [m]
  virtual void linear_bias_weight_grad(float* dweight, float* dbias, const void* dy, const void* x,
                                       const GemmSize& size) = 0;

  /// sum = x + residual, y = norm(sum). With a null residual y = norm(x), and `sum` is not written. x, residual, sum,
  /// y: [R, C]
  virtual void norm_forward(void* y, void* sum, const void* x, const void* residual, const DeviceNorm& norm,
                            const NormSize& size, float epsilon) = 0;
  /// dx = past + the norm's gradient; dgain and dbias (null: none) += their gradients. dx may be dy, past (null: zeros)
  /// or x.
  virtual void norm_backward(void* dx, float* dgain, float* dbias, const void* dy, const void* past, const void* x,
                             const DeviceNorm& norm, const NormSize& size) = 0;

  /// Apply an activation. The backward replaces `up` by its gradient. up: [rows, f], or gated [rows, 2f]; y: [rows, f]
  virtual void activation_forward(void* y, const void* up, const MlpActivation& of) = 0;
  virtual void activation_backward(void* up, const void* dy, const MlpActivation& of) = 0;

  virtual void bias_forward(void* y, const float* bias, std::int64_t rows, std::int64_t columns) = 0;
  virtual void bias_backward(float* dbias, const void* dy, std::int64_t rows, std::int64_t columns) = 0;
  /// z = x + (y + bias); a null bias counts as zeros.
  virtual void residual_add(void* z, const void* x, const void* y, const float* bias, std::int64_t rows,
                            std::int64_t columns) = 0;
  /// Turns the heads of x. table: fp32 [s, rotary_size]
  virtual void rotary(void* x, const float* table, const RotarySize& size, RotaryDirection direction) = 0;

  /// y = residual (null: zeros) + dropout of x; y may be either. `numbers` (null: the key) gives the replay that draws
  /// the mask, here and for attention's probabilities.
  virtual void dropout(void* y, const void* x, const void* residual, const DropoutKey& key, const DropoutRows& rows,
                       double probability, const StepNumbers* numbers) = 0;

  /// positions and dpositions may be null.
  virtual void embedding_forward(void* y, const std::int32_t* tokens, const void* table, const void* positions,
                                 const EmbeddingSize& size) = 0;
  virtual void embedding_backward(float* dtable, float* dpositions, const void* dy, const std::int32_t* tokens,
                                  const EmbeddingSize& size) = 0;

  /// Writes the loss of each row, and replaces the logits by their gradient times `gradient_scale` and the loss scale
  /// (null: 1); it is 0 in the padding. The part is the whole vocabulary, from its first token on. losses: [rows]
  virtual void cross_entropy(float* losses, void* logits, const std::int32_t* targets, const VocabPart& part,
                             float gradient_scale, const float* loss_scale) = 0;

  /// Compute the same where a tensor group shares the vocabulary: first the parts [3, T] of the own columns, then, from
  /// the parts of all ranks, the loss and the gradient.
  virtual void cross_entropy_parts(float* parts, const void* logits, const std::int32_t* targets,
                                   const VocabPart& part) = 0;
  virtual void cross_entropy_from_parts(float* losses, void* logits, const float* all_parts, int ranks,
                                        const std::int32_t* targets, const VocabPart& part, float gradient_scale,
                                        const float* loss_scale) = 0;

  /// sum = x + y, in fp32.
  virtual void add_gradients(float* sum, const float* x, const float* y, std::int64_t elements) = 0;
};

}}  // namespace plumb::executor
