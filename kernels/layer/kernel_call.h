#pragma once
// A kernel call: what it computes on which shape, its FLOPs and the elements that it moves.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace plumb { inline namespace kernels {

/// The way in which a product uses its matrices. Libraries run the three at different speeds (OpenBLAS: up to 30 %
/// apart at m = 32). The last three are single calls of devices whose products include the operation behind them
/// (kernels/layer/fused_kernels.h).
enum class GemmForm : std::uint8_t {
  kForward,         ///< y [m,n] = x [m,k] * (W [n,k])^T
  kInputGrad,       ///< dx [m,n] = dy [m,k] * W [k,n]
  kWeightGrad,      ///< dW [m,n] += (dy [k,m])^T * x [k,n]
  kForwardBias,     ///< y = x W^T + bias [n]
  kForwardGelu,     ///< up = x W^T (+ bias [n]) and y = GELU by tanh of up; both [m,n] are written
  kWeightGradBias,  ///< kWeightGrad, and dbias [m] += sums of dy over its rows
};

/// True for the forms that a device fuses.
constexpr bool is_fused(GemmForm form) {
  return form > GemmForm::kWeightGrad;
}
/// True if the product adds to its result.
constexpr bool adds_up(GemmForm form) {
  return form == GemmForm::kWeightGrad || form == GemmForm::kWeightGradBias;
}

/// The operation of one kernel call, and the `shape` of each kind:
enum class KernelKind : std::uint8_t {
  kGemm,               ///< {m, n, k, count, form}: count products of [m,k] and [k,n]; form is a GemmForm
  kAttentionForward,   ///< {b, s, a, k, d, window}: softmax(Q K^T / sqrt(d)) V, causal, no s^2 tensor kept
  kAttentionBackward,  ///< {b, s, a, k, d, window}: dQ, dK, dV; recomputes the probabilities
  /// {rows, columns, (layer norm ? 1 : 0) + (a residual sum, which is kept, comes first ? 2 : 0)}
  kNormForward,
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
  kConvolutionInputGrad,   ///< the forward's shape
  kConvolutionWeightGrad,  ///< the forward's shape; added to the gradient
  kPoolingForward,         ///< {images, height, width, channels, kernel, stride, average ? 1 : 0}
  kPoolingBackward,        ///< the forward's shape
  kReluForward,            ///< {rows, columns}: in place; keeps which elements passed, a bit each
  kReluBackward,           ///< {rows, columns}: in place
  kDropout,                ///< {rows, columns}: in place; forward and backward draw the same mask
  kSquaredError,           ///< {rows, columns}: loss, and the gradient in place of the predictions
  kRouter,                 ///< {tokens, experts, picks}: in place; softmax and picks, or the backward
  kCopyRows,               ///< {rows, columns}: tokens' rows to their picks' places, or sums of these back
  // Kinds that only devices have.
  kCopy,            ///< {elements}: to another place of the device's memory
  kWeighPicks,      ///< {picks, ffn, hidden}: gradients of a pick's activation and output, times its weight
  kExpertProducts,  ///< kGemm's shape: products of experts, whose rows the device counts
  kRouterProduct,   ///< {tokens, experts, hidden, form}: scores in fp32, or their gradients; form is a GemmForm
  kAdamW8Bit,       ///< {elements}: kAdamW with moments of a byte
  kSgd,             ///< {elements}: one momentum
  kLion,            ///< {elements}: one momentum
  kAdafactor,       ///< {matrices, rows, columns}; rows 0: a vector
  // Kinds that calibrations do not measure. First those of latent attention, whose values have another size than its
  // keys.
  kLatentAttentionForward,   ///< {b, s, a, size of queries and keys, size of values, window}
  kLatentAttentionBackward,  ///< the forward's shape
  /// {tokens, a, size of queries and keys, turned channels, size of values}: joins each head's queries, keys and values;
  /// all heads share the turned channels of the keys.
  kJoinHeads,
  kSplitHeads,  ///< kJoinHeads's shape: the gradients of its inputs
  // Mamba-2's.
  kCausalConvolutionForward,   ///< {b, s, channels, taps}: each channel by itself over the last tokens, then SiLU
  kCausalConvolutionBackward,  ///< the forward's shape: the input's gradient in place of the input, and the weights'
  kStateSpaceForward,  ///< {b, s, heads, head size, groups, state size, chunk}: the chunked form of Mamba-2's recurrence
  kStateSpaceBackward,  ///< the forward's shape: all gradients; computes the chunks' states again
  kGatedNormForward,    ///< {rows, columns, groups}: RMS norm of each group of y * silu(z)
  kGatedNormBackward,   ///< the forward's shape: gradients of y and z in place
  // Kinds that are priced and that no machine runs.
  kSelectiveScanForward,   ///< {b, s, channels, state size}: Mamba's recurrence, and its output times silu(z)
  kSelectiveScanBackward,  ///< the forward's shape: all gradients; computes the states again
  /// {b, s, value heads, key heads, key size, value size, chunk}: the chunked form of the gated delta rule
  kDeltaRuleForward,
  kDeltaRuleBackward,  ///< the forward's shape: all gradients; computes the chunks' states again
  kGateForward,        ///< {rows, columns}: y times silu or sigmoid of z
  kGateBackward,       ///< {rows, columns}: gradients of y and z
};
inline constexpr int kKernelKindCount = 50;
inline constexpr int kCpuKernelKindCount = 26;     ///< the first kinds, which are measured on a CPU
inline constexpr int kDeviceKernelKindCount = 34;  ///< the first kinds, which are measured on a device

/// True if no machine runs the kind.
constexpr bool is_priced_only(KernelKind kind) {
  return kind >= KernelKind::kSelectiveScanForward;
}

std::string_view kernel_name(KernelKind kind);

struct KernelCall {
  KernelKind kind = KernelKind::kGemm;
  std::vector<std::int64_t> shape;
  double flops = 0;           ///< multiply and add count as two; causal attention counts the computed half
  double elements_moved = 0;  ///< elements of the computing precision that cross memory at least, read and written

  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};

/// Returns how many sizes the shape of a kind has.
std::size_t kernel_shape_length(KernelKind kind);

/// Returns the call of a kind and shape with its FLOPs and elements filled in. FLOPs are exact for GEMMs and attention
/// (which counts the pairs of query and key that the causal mask and the window leave). The other kinds have a nominal
/// count, which takes a transcendental function for one operation. Asserts that the shape has the kind's length.
KernelCall kernel_call(KernelKind kind, std::vector<std::int64_t> shape);

}}  // namespace plumb::kernels
