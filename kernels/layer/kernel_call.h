#pragma once
// A kernel call: what is computed on which shape, its FLOPs and the elements that it moves.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace plumb { inline namespace kernels {

/// How a product uses its matrices; libraries run the three at different speeds (OpenBLAS: up to 30 % apart at m = 32).
/// Behind them those of devices whose products take in what follows (kernels/layer/fused_kernels.h), one call each.
enum class GemmForm : std::uint8_t {
  kForward,         ///< y [m,n] = x [m,k] * (W [n,k])^T
  kInputGrad,       ///< dx [m,n] = dy [m,k] * W [k,n]
  kWeightGrad,      ///< dW [m,n] += (dy [k,m])^T * x [k,n]
  kForwardBias,     ///< y = x W^T + bias [n]
  kForwardGelu,     ///< up = x W^T + bias [n], where there is one; y = GELU by tanh of it: both [m,n] are written
  kWeightGradBias,  ///< as kWeightGrad, and dbias [m] += sums of dy over its rows
};

/// Of a fused form.
constexpr bool is_fused(GemmForm form) {
  return form > GemmForm::kWeightGrad;
}
/// Whether it adds to what is there.
constexpr bool adds_up(GemmForm form) {
  return form == GemmForm::kWeightGrad || form == GemmForm::kWeightGradBias;
}

/// What one kernel call computes. The `shape` of each kind:
enum class KernelKind : std::uint8_t {
  kGemm,                ///< {m, n, k, count, form}: count products of [m,k] and [k,n]; form is a GemmForm
  kAttentionForward,    ///< {b, s, a, k, d, window}: softmax(Q K^T / sqrt(d)) V, causal, no s^2 tensor kept
  kAttentionBackward,   ///< {b, s, a, k, d, window}: dQ, dK, dV; recomputes the probabilities
  kNormForward,         ///< {rows, columns, (layer norm ? 1 : 0) + (behind a residual's sum, which is kept ? 2 : 0)}
  kNormBackward,        ///< {rows, columns, layer norm ? 1 : 0}: dx added to the residual's gradient, dgain (and dbias)
  kActivationForward,   ///< {rows, columns of the result, gated ? 1 : 0}
  kActivationBackward,  ///< {rows, columns of the result, gated ? 1 : 0}
  kBiasForward,         ///< {rows, columns}: added in place
  kBiasBackward,        ///< {rows, columns}: column sums added to the gradient
  kRotary,              ///< {tokens, heads turned, rotary size}: in place; the backward turns the other way
  kResidualAdd,         ///< {rows, columns}: z = x + y
  kEmbeddingForward,    ///< {tokens, columns, positions ? 1 : 0}
  kEmbeddingBackward,   ///< {tokens, columns, positions ? 1 : 0}
  kCrossEntropy,        ///< {rows, columns}: loss, and the gradient in place of the logits
  kAdamW,               ///< {elements}: one update of parameters and both moments, gradients zeroed
  kConvolutionForward,  ///< {images, height, width, channels, filters, kernel, stride, padding, groups}
  kConvolutionInputGrad,   ///< as the forward
  kConvolutionWeightGrad,  ///< as the forward; added to the gradient
  kPoolingForward,         ///< {images, height, width, channels, kernel, stride, average ? 1 : 0}
  kPoolingBackward,        ///< as the forward
  kReluForward,            ///< {rows, columns}: in place; keeps which elements passed, a bit each
  kReluBackward,           ///< {rows, columns}: in place
  kDropout,                ///< {rows, columns}: in place, forward and backward alike: the mask is drawn anew
  kSquaredError,           ///< {rows, columns}: loss, and the gradient in place of the predictions
  kRouter,                 ///< {tokens, experts, picks}: softmax and the picks, or its backward; in place
  kCopyRows,               ///< {rows, columns}: tokens' rows to their picks' places, or sums of these back
  // Of devices alone.
  kCopy,            ///< {elements}: to another place of the device's memory
  kWeighPicks,      ///< {picks, ffn, hidden}: gradients of a pick's activation and output times what it weighs
  kExpertProducts,  ///< as kGemm: products of experts, whose rows the device counts
  kRouterProduct,   ///< {tokens, experts, hidden, form}: scores in fp32, their gradients back; form is a GemmForm
  kAdamW8Bit,       ///< {elements}: as kAdamW, moments of a byte
  kSgd,             ///< {elements}: one momentum
  kLion,            ///< {elements}: one momentum
  kAdafactor,       ///< {matrices, rows, columns}; rows 0: a vector
};
inline constexpr int kKernelKindCount = 34;
inline constexpr int kCpuKernelKindCount = 26;  ///< the first: those that the cpu backend has, too

std::string_view kernel_name(KernelKind kind);

struct KernelCall {
  KernelKind kind = KernelKind::kGemm;
  std::vector<std::int64_t> shape;
  double flops = 0;           ///< multiply and add counted apart; causal attention counts the computed half
  double elements_moved = 0;  ///< elements of the computing precision that must cross memory once, read and written

  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};

/// How many sizes the shape of a kind has.
std::size_t kernel_shape_length(KernelKind kind);

/// The call of a kind and shape with its FLOPs and elements filled in. FLOPs are exact for GEMMs and attention (which
/// counts the pairs of query and key that the causal mask and the window leave); elsewhere a nominal count, one for a
/// transcendental. Asserts that the shape has the kind's length.
KernelCall kernel_call(KernelKind kind, std::vector<std::int64_t> shape);

}}  // namespace plumb::kernels
