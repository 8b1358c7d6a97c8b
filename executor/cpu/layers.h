#pragma once
// The three kinds of layer on the CPU: forward, input gradient and weight gradient of one micro-batch, in the order and
// with the tensors that kernels/layer.h promises. A gradient takes the storage of a tensor that is not needed any more:
//
//   saved tensor   after the input gradient it holds
//   input          the gradient of the layer's input, handed to the layer before (or sent)
//   residual       the gradient between attention and MLP
//   qkv, up        their own gradients
//   logits         their gradient already from the forward on
//
// Symbols as in kernels/layer.h: T tokens, h hidden, q = a*d, w = (a+2k)*d, f feed-forward, u = 2f (gated) or f, V
// vocabulary.

#include <string>
#include <variant>
#include <vector>

#include "executor/cpu/kernel_set.h"
#include "executor/tensor_pool.h"
#include "kernels/layer.h"

namespace plumb {

/// What the layers of a stage share.
struct CpuContext {
  CpuKernelSet kernels;
  TensorPool* pool = nullptr;
  LayerWork work;                   ///< of a slice: its sequences have the slice's tokens
  float* scratch = nullptr;         ///< [largest attention_scratch_elements of the stage]
  std::int64_t first_token = 0;     ///< where in its sequence a slice begins
  std::int64_t whole_sequence = 0;  ///< tokens of the sequences that are sliced; 0: they are not
};

/// What the slices of a micro-batch share in one transformer layer: from the first F to the last I.
struct SequenceSaved {
  Tensor keys_values;  // [b*s, 2k*d]
  Tensor gradients;    // [b*s, 2k*d], what the slices done so far owe to them; from the first I on
};

/// Where a layer's parameters lie in its block of weights; gradients lie alike. -1: the layer has none of that name.
struct EmbeddingOffsets {
  std::int64_t tokens = -1, positions = -1;
};
struct TransformerOffsets {
  std::int64_t norm1_gain = -1, norm1_bias = -1, qkv = -1, qkv_bias = -1, output = -1, output_bias = -1;
  std::int64_t norm2_gain = -1, norm2_bias = -1, up = -1, up_bias = -1, down = -1, down_bias = -1;
};
struct HeadOffsets {
  std::int64_t norm_gain = -1, norm_bias = -1, projection = -1;
};

/// Element offset of the parameter of that name in the layer's block; -1 if there is none.
std::int64_t parameter_offset(const Layer& layer, const std::string& name);

struct EmbeddingSaved {
  Tensor tokens;           // [T]
  Tensor output_gradient;  // [T, h], between the input and the weight gradient
};
struct CpuEmbedding {
  using Saved = EmbeddingSaved;
  EmbeddingLayer layer;
  EmbeddingOffsets at;

  explicit CpuEmbedding(const EmbeddingLayer& embedding);
  /// `saved.tokens` is filled by the caller. Returns [T, h].
  Tensor forward(const CpuContext& context, const float* weights, EmbeddingSaved& saved) const;
  void weight_grad(const CpuContext& context, float* gradients, EmbeddingSaved& saved) const;

 private:
  /// The row of the position table that a slice begins with; null without positions.
  template <class T>
  T* positions_from(T* block, const CpuContext& context) const {
    return at.positions < 0 ? nullptr : block + at.positions + context.first_token * layer.hidden;
  }
};

struct TransformerSaved {
  Tensor input;             // [T, h]
  Tensor norm1_statistics;  // [T] or [2T]
  Tensor norm1_output;      // [T, h]
  Tensor qkv;               // [T, w]
  Tensor log_sum_exp;       // [b, a, s]
  Tensor attention_output;  // [T, q]
  Tensor residual;          // [T, h]; empty with a parallel residual
  Tensor norm2_statistics;  // [T] or [2T]
  Tensor norm2_output;      // [T, h]
  Tensor up;                // [T, u]
  Tensor activation;        // [T, f]
  Tensor output_gradient;   // [T, h], between the input and the weight gradient
};
struct CpuTransformer {
  using Saved = TransformerSaved;
  TransformerLayer layer;
  TransformerOffsets at;
  std::vector<float> rotary;  // rotary_table [s, rotary_size] of whole sequences

  CpuTransformer(const TransformerLayer& transformer, std::int64_t sequence);
  /// input: [T, h]. Returns [T, h]. `sequence` is there where sequences are sliced.
  Tensor forward(const CpuContext& context, const float* weights, Tensor input, TransformerSaved& saved,
                 SequenceSaved* sequence = nullptr) const;
  /// output_gradient: [T, h]. Returns the input's gradient [T, h]; the norms' gradients are added to `gradients`.
  Tensor input_grad(const CpuContext& context, const float* weights, float* gradients, Tensor output_gradient,
                    TransformerSaved& saved, SequenceSaved* sequence = nullptr) const;
  void weight_grad(const CpuContext& context, float* gradients, TransformerSaved& saved) const;

 private:
  const float* rotary_from(std::int64_t token) const { return rotary.data() + token * layer.rotary_size; }
};

struct HeadSaved {
  Tensor input;            // [T, h]
  Tensor norm_statistics;  // [T] or [2T]
  Tensor norm_output;      // [T, h]
  Tensor logits;           // [T, V]
};
struct CpuHead {
  using Saved = HeadSaved;
  HeadLayer layer;
  HeadOffsets at;

  explicit CpuHead(const HeadLayer& head);
  /// input: [T, h]; targets: [T]. Returns the summed loss of the micro-batch; the logits' gradient is gradient_scale
  /// times that of the sum.
  double forward(const CpuContext& context, const float* weights, Tensor input, const Tensor& targets,
                 float gradient_scale, HeadSaved& saved) const;
  Tensor input_grad(const CpuContext& context, const float* weights, float* gradients, HeadSaved& saved) const;
  void weight_grad(const CpuContext& context, float* gradients, HeadSaved& saved) const;
};

}  // namespace plumb
