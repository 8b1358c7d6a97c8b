#pragma once
// What a layer is: its kind and sizes, and from these its parameters, the kernels that run it (with their shapes, FLOPs
// and bytes) and the tensors it keeps for its backward. No numerics here. The planner prices these lists and the
// executor runs them: the layers that are priced are the layers that run.
//
// Symbols (used on every tensor of kernels/): b micro-batch, s sequence, T = b*s tokens, h hidden, a heads, k kv heads,
// d head size, f feed-forward size, V vocabulary, t tensor-parallel degree.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace plumb {

enum class NormKind : std::uint8_t { kRmsNorm, kLayerNorm };
enum class MlpKind : std::uint8_t { kGelu, kSwiglu };

/// Token embedding, and a learned position embedding where `positions` > 0.
struct EmbeddingLayer {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t positions = 0;
  double dropout = 0;

  friend bool operator==(const EmbeddingLayer&, const EmbeddingLayer&) = default;
};

/// One decoder block: norm, causal attention, residual, norm, MLP, residual.
struct TransformerLayer {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  std::int64_t ffn = 0;
  NormKind norm = NormKind::kRmsNorm;
  MlpKind mlp = MlpKind::kSwiglu;
  bool exact_gelu = false;  ///< GELU by erf instead of its tanh approximation
  bool qkv_bias = false;
  bool linear_bias = false;        ///< on the attention's output projection and the MLP's matrices
  bool parallel_residual = false;  ///< x + attention(norm1(x)) + mlp(norm2(x)) (GPT-NeoX)
  std::int64_t rotary_size = 0;    ///< leading channels of each head that RoPE turns; 0: no RoPE
  double rope_theta = 10000.0;
  std::int64_t window = 0;  ///< sliding attention window in tokens; 0: the whole past
  double norm_epsilon = 1e-5;
  // Mixture of experts (Shazeer et al. 2017) in the place of the MLP of `ffn` channels where `experts` > 0.
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;  ///< that the router picks
  std::int64_t expert_ffn = 0;         ///< channels of one expert
  std::int64_t shared_ffn = 0;         ///< channels that every token passes besides; 0: none
  // Multi-head latent attention (DeepSeek-AI 2024, 2405.04434) where `kv_rank` > 0: `head_size` is that of queries and
  // keys, its last `rotary_size` channels are turned, and the keys share them.
  std::int64_t query_rank = 0;  ///< of the compressed queries; 0: not compressed
  std::int64_t kv_rank = 0;     ///< of the compressed keys and values
  std::int64_t value_size = 0;  ///< of a head's values
  double dropout = 0;           ///< of the attention probabilities and of both branches

  friend bool operator==(const TransformerLayer&, const TransformerLayer&) = default;
};

/// Final norm, projection to the vocabulary, softmax cross-entropy against the next token.
struct HeadLayer {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  NormKind norm = NormKind::kRmsNorm;
  double norm_epsilon = 1e-5;
  bool tied =
      false;  ///< the projection is the token embedding's table (each use keeps its own copy and gradient buffer)

  friend bool operator==(const HeadLayer&, const HeadLayer&) = default;
};

using Layer = std::variant<EmbeddingLayer, TransformerLayer, HeadLayer>;

/// "embedding", "transformer", "head".
std::string_view layer_kind_name(const Layer& layer);

/// A parameter tensor, row-major.
struct ParameterTensor {
  std::string name;                 ///< e.g. "qkv.weight"
  std::vector<std::int64_t> shape;  ///< e.g. [h + 2kd, h]: [out, in] for matrices
  int split_dimension = -1;         ///< which dimension tensor parallelism divides; -1: replicated
  bool expert = false;              ///< of a routed expert: divided by expert parallelism, [experts, out, in]

  friend bool operator==(const ParameterTensor&, const ParameterTensor&) = default;
};

/// How the routed experts of a layer are divided: by experts, and each expert like an MLP.
struct ExpertDivision {
  int parallel = 1;
  int tensor = 1;

  friend bool operator==(const ExpertDivision&, const ExpertDivision&) = default;
};

/// The parameters of a layer on one of `tensor_parallel` ranks, in the order in which every part of Plumb keeps them. A
/// tied head lists its table too. A head, channel, row or expert count that the division does not divide is rounded up
/// (the fullest rank's share); kv heads are at least one a rank.
std::vector<ParameterTensor> layer_parameters(const Layer& layer, int tensor_parallel = 1, ExpertDivision experts = {});

/// Elements of one tensor, and of all parameters of a layer on one of `tensor_parallel` ranks (replicated ones in
/// full).
std::int64_t element_count(const ParameterTensor& tensor);
std::int64_t parameter_count(const Layer& layer, int tensor_parallel = 1, ExpertDivision experts = {});

/// Of these the parameters of routed experts.
std::int64_t expert_parameter_count(const Layer& layer, ExpertDivision experts = {});

/// Whether this version's kernels run the layer: not mixtures of experts, latent attention and dropout, which are only
/// priced.
bool has_kernels(const Layer& layer);

/// How a product uses its matrices; libraries run the three at different speeds (OpenBLAS: up to 30 % apart at m = 32).
enum class GemmForm : std::uint8_t {
  kForward,     ///< y [m,n] = x [m,k] * (W [n,k])^T
  kInputGrad,   ///< dx [m,n] = dy [m,k] * W [k,n]
  kWeightGrad,  ///< dW [m,n] += (dy [k,m])^T * x [k,n]
};

/// What one kernel call computes. The `shape` of each kind:
enum class KernelKind : std::uint8_t {
  kGemm,                ///< {m, n, k, count, form}: count products of [m,k] and [k,n]; form is a GemmForm
  kAttentionForward,    ///< {b, s, a, k, d, window}: softmax(Q K^T / sqrt(d)) V, causal, no s^2 tensor kept
  kAttentionBackward,   ///< {b, s, a, k, d, window}: dQ, dK, dV; recomputes the probabilities
  kNormForward,         ///< {rows, columns, layer norm ? 1 : 0}
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
};
inline constexpr int kKernelKindCount = 15;

std::string_view kernel_name(KernelKind kind);

struct KernelCall {
  KernelKind kind = KernelKind::kGemm;
  std::vector<std::int64_t> shape;
  double flops = 0;           ///< multiply and add counted apart; causal attention counts the computed half
  double elements_moved = 0;  ///< elements of the computing precision that must cross memory once, read and written

  friend bool operator==(const KernelCall&, const KernelCall&) = default;
};

/// The call of a kind and shape with its FLOPs and elements filled in. FLOPs are exact for GEMMs and attention (which
/// counts the pairs of query and key that the causal mask and the window leave); elsewhere a nominal count, one for a
/// transcendental. Asserts that the shape has the kind's length.
KernelCall kernel_call(KernelKind kind, std::vector<std::int64_t> shape);

enum class Pass : std::uint8_t { kForward, kInputGrad, kWeightGrad, kOptimizer };

/// One micro-batch, and how tensor parallelism divides the layer.
struct LayerWork {
  std::int64_t microbatch = 1;  ///< sequences
  std::int64_t sequence = 1;    ///< tokens
  int tensor_parallel = 1;
  bool sequence_parallel = false;  ///< norms, residuals and dropout work on 1/t of the tokens (Megatron's SP)
  int context_parallel = 1;        ///< ranks that share the sequence; only priced
  ExpertDivision experts;          ///< only priced
};

/// The kernels of one pass over one layer on one rank, in the order in which they run. A whole backward is the input
/// gradient's list followed by the weight gradient's. A layer whose input needs no gradient (the embedding) has an
/// empty kInputGrad. The head's cross-entropy and its logits belong to kForward. Asserts has_kernels().
std::vector<KernelCall> layer_kernels(const Layer& layer, const LayerWork& work, Pass pass);

/// A tensor that a layer keeps from its forward to its backward.
struct SavedTensor {
  std::string name;           ///< e.g. "attention output"
  std::int64_t elements = 0;  ///< on one rank
  bool single_precision =
      false;  ///< 4 bytes an element whatever the computing precision (norm statistics, log-sum-exp, tokens)
  bool needed_by_weight_grad = false;  ///< its storage is still held after the input gradient is done: the weight
                                       ///< gradient reads it, or the gradient that has taken its place

  friend bool operator==(const SavedTensor&, const SavedTensor&) = default;
};
std::vector<SavedTensor> saved_tensors(const Layer& layer, const LayerWork& work);

/// Elements of the temporaries that a pass holds at its peak besides the saved tensors, its input and its output
/// (kInputGrad's output takes the place of the saved input). A kernel's own scratch is not counted.
std::int64_t workspace_elements(const Layer& layer, const LayerWork& work, Pass pass);

/// Elements of the tensor that a layer hands to the next, on one rank: T*h (T*h/t with sequence parallelism); 0 for a
/// head.
std::int64_t output_elements(const Layer& layer, const LayerWork& work);

}  // namespace plumb
