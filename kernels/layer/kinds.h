#pragma once
// The kinds of layer, by their sizes.

#include <cstdint>
#include <string_view>
#include <variant>

namespace plumb { inline namespace kernels {

enum class NormKind : std::uint8_t { kRmsNorm, kLayerNorm };
enum class MlpKind : std::uint8_t { kGelu, kSwiglu };

/// The norms of queries and of keys between their projection and RoPE, each of the block's kind of norm.
enum class QueryKeyNorms : std::uint8_t {
  kNone,
  /// Over the channels of each head, with one gain for all heads (Henry et al. 2020; transformers' Qwen3Attention and
  /// Gemma3Attention, whose norms are of head_dim; Megatron-LM's --qk-layernorm).
  kEachHead,
  /// Over the channels of all heads at once (transformers' Olmo2Attention, whose norms are of num_attention_heads *
  /// head_dim and of num_key_value_heads * head_dim).
  kAllHeads,
};

/// The function by which a router turns scores into weights of experts.
enum class RouterKind : std::uint8_t {
  kSoftmax,  ///< over all experts (Shazeer et al. 2017)
  kSigmoid,  ///< of each expert by itself (DeepSeek-AI 2024, 2412.19437)
};

/// Token embedding, and a learned position embedding where `positions` > 0.
struct EmbeddingLayer {
  std::int64_t vocab = 0;
  std::int64_t hidden = 0;
  std::int64_t positions = 0;
  double dropout = 0;

  friend bool operator==(const EmbeddingLayer&, const EmbeddingLayer&) = default;
};

/// Mamba-2's mixer (Dao & Gu 2024, 2405.21060). It projects each token to z, x, B, C and step sizes, convolves x, B and C
/// over the last tokens, runs a state space in each head, norms its output times silu(z), and projects it back. Heads of
/// one group share B and C, and the norm is that of a group.
struct Mamba2Mixer {
  std::int64_t heads = 0;
  std::int64_t head_size = 0;
  std::int64_t state_size = 0;  ///< channels of B and of C; a head's state is [head size, state size]
  std::int64_t groups = 1;      ///< divides the heads
  std::int64_t taps = 4;        ///< tokens that the convolution sees
  std::int64_t chunk = 256;     ///< tokens that are multiplied together
  bool linear_bias = false;     ///< on both projections
  bool convolution_bias = true;
  bool gated_norm = true;  ///< false: the output is multiplied by silu(z) without a norm (Falcon-H1)

  std::int64_t inner() const { return heads * head_size; }                      ///< channels of x, and of z
  std::int64_t convolved() const { return inner() + 2 * groups * state_size; }  ///< channels of x, B and C
  std::int64_t projected() const { return inner() + convolved() + heads; }      ///< channels of z, x, B, C, steps
  friend bool operator==(const Mamba2Mixer&, const Mamba2Mixer&) = default;
};

/// Mamba's mixer (Gu & Dao 2023, 2312.00752, section 3.4). It projects each token to x and z, convolves x over the last
/// tokens, takes B, C and low-rank step sizes from it, runs a state space in each channel, multiplies its output by
/// silu(z), and projects it back.
struct MambaMixer {
  std::int64_t channels = 0;    ///< of x, and of z
  std::int64_t state_size = 0;  ///< channels of B and of C, and of a channel's state
  std::int64_t step_rank = 0;   ///< channels from which the step sizes of all channels are made
  std::int64_t taps = 4;        ///< tokens that the convolution sees
  bool linear_bias = false;     ///< on the first and the last projection
  bool convolution_bias = true;
  bool inner_norms = false;  ///< B, C and the low-rank step sizes are normed (Jamba, Lieber et al. 2024)

  friend bool operator==(const MambaMixer&, const MambaMixer&) = default;
};

/// A gated delta net (Yang et al. 2024, 2412.06464, as Qwen3-Next has it). It projects each token to queries, keys,
/// values, z, decays and step sizes, convolves queries, keys and values over the last tokens, runs the gated delta rule
/// in each value head, norms each head times silu(z), and projects it back. A key head serves value_heads / key_heads
/// value heads.
struct DeltaNetMixer {
  std::int64_t key_heads = 0;  ///< divides the value heads
  std::int64_t value_heads = 0;
  std::int64_t key_size = 0;    ///< channels of a query, and of a key
  std::int64_t value_size = 0;  ///< channels of a value; a head's state is [key size, value size]
  std::int64_t taps = 4;        ///< tokens that the convolution sees
  std::int64_t chunk = 64;      ///< tokens that are multiplied together

  std::int64_t inner() const { return value_heads * value_size; }                     ///< channels of values, and of z
  std::int64_t convolved() const { return 2 * key_heads * key_size + inner(); }       ///< queries, keys and values
  std::int64_t projected() const { return convolved() + inner() + 2 * value_heads; }  ///< and z, decays, steps
  friend bool operator==(const DeltaNetMixer&, const DeltaNetMixer&) = default;
};

/// An operator that mixes tokens by a state that passes from token to token; none where it is empty.
using StateMixer = std::variant<std::monostate, Mamba2Mixer, MambaMixer, DeltaNetMixer>;

/// One decoder block: norm, what mixes tokens, residual, norm, what feeds forward, residual. Tokens are mixed by causal
/// attention (`heads` > 0), by a state mixer, or by both beside each other (Falcon-H1), whose results are summed. An MLP
/// (`ffn` > 0) or experts feed forward. A half that has neither is left out with its norm and its residual.
struct TransformerLayer {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;  ///< 0: no attention
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  std::int64_t ffn = 0;  ///< 0: no MLP
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
  std::int64_t experts_per_token = 0;  ///< picks of the router for each token
  /// Equal groups of neighbouring experts, of which a token's picks come from `groups_per_token` (DeepSeek-AI 2024,
  /// 2405.04434, section 2.2.2: those of one device; 2412.19437, section 2.1.2: those of one node).
  std::int64_t expert_groups = 1;
  std::int64_t groups_per_token = 1;
  std::int64_t expert_ffn = 0;  ///< channels of one expert
  std::int64_t shared_ffn = 0;  ///< channels of the shared expert, which every token passes; 0: none
  /// True: a token's picks weigh 1 in all (Mixtral, Qwen3). False: a pick weighs its probability.
  bool renormalised = true;
  /// An expert takes at most this many times its even share of the picks of a sequence; 0: it takes all.
  double capacity_factor = 0;
  double balance_loss = 0;  ///< weight of the load-balancing loss (Fedus et al. 2021), which is counted by sequence
  RouterKind router = RouterKind::kSoftmax;
  bool router_bias = false;  ///< on the router's scores, trained
  /// The picks, but not their weights, follow the scores plus a bias that each expert's load moves after a step
  /// (DeepSeek-AI 2024, 2412.19437, section 2.1.2). No gradient trains it.
  bool selection_bias = false;
  double balance_rate = 0.001;  ///< by which a step moves that bias (the same, section 4.2)
  bool expert_bias = false;     ///< on both products of every routed expert
  // Multi-head latent attention (DeepSeek-AI 2024, 2405.04434) where `kv_rank` > 0: `head_size` is that of queries and
  // keys, its last `rotary_size` channels are turned, and the keys share them.
  std::int64_t query_rank = 0;  ///< width of the compressed queries; 0: not compressed
  std::int64_t kv_rank = 0;     ///< width of the compressed keys and values
  std::int64_t value_size = 0;  ///< channels of a head's values
  /// Each head has a trained score that takes part in its softmax and has no value (Xiao et al. 2023; gpt-oss).
  bool sinks = false;
  double attention_softcap = 0;  ///< bound to which tanh limits attention's scores (Gemma Team 2024); 0: none
  /// Each channel of attention's output is multiplied by the sigmoid of a gate, which is projected with the queries
  /// (Qwen3-Next).
  bool output_gate = false;
  QueryKeyNorms query_key_norms = QueryKeyNorms::kNone;
  StateMixer states;
  /// Probability of dropping attention probabilities, and of dropping in each branch before it joins the residual.
  double dropout = 0;

  bool mixes_states() const { return states.index() > 0; }
  bool mixes_tokens() const { return heads > 0 || mixes_states(); }
  bool feeds_forward() const { return ffn > 0 || experts > 0; }
  friend bool operator==(const TransformerLayer&, const TransformerLayer&) = default;
};

/// Returns the block of the state mixer alone: without attention, MLP and experts.
inline TransformerLayer states_alone(TransformerLayer layer) {
  layer.heads = layer.kv_heads = layer.head_size = layer.ffn = layer.experts = layer.kv_rank = 0;
  return layer;
}

/// The dropouts of a block, numbered so that their masks differ. A layer with one dropout has number 0.
enum BlockDropout : std::uint64_t { kProbabilities, kAttentionBranch, kFeedForwardBranch };

/// Returns the layer with an MLP of another width; one expert is such a layer.
inline TransformerLayer with_ffn(TransformerLayer layer, std::int64_t ffn) {
  layer.ffn = ffn;
  return layer;
}

/// Returns the number of products of an MLP before its activation: gate and up if it is gated, else up alone.
inline int up_products(const TransformerLayer& layer) {
  return layer.mlp == MlpKind::kSwiglu ? 2 : 1;
}

/// Final norm, projection to the vocabulary, softmax cross-entropy against the next token.
struct HeadLayer {
  std::int64_t vocab = 0;
  std::int64_t padding = 0;  ///< rows of the projection that are no tokens, the last of `vocab`
  std::int64_t hidden = 0;
  NormKind norm = NormKind::kRmsNorm;
  double norm_epsilon = 1e-5;
  /// The projection is the token embedding's table (each use keeps its own copy and gradient buffer).
  bool tied = false;
  double logit_softcap = 0;  ///< bound to which tanh limits the logits (Gemma Team 2024); 0: none

  friend bool operator==(const HeadLayer&, const HeadLayer&) = default;
};

/// Samples of real numbers from the data: images [height, width, channels], or vectors of `width` numbers. The layer
/// computes nothing.
struct InputLayer {
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t channels = 1;

  friend bool operator==(const InputLayer&, const InputLayer&) = default;
};

/// Convolution with a bias, and a ReLU where set. Images are [height, width, channels]; where `groups` > 1, each group
/// of filters sees its share of the channels (Krizhevsky et al. 2012).
struct ConvolutionLayer {
  std::int64_t height = 0;    ///< rows of the input
  std::int64_t width = 0;     ///< columns of the input
  std::int64_t channels = 0;  ///< channels of the input
  std::int64_t filters = 0;   ///< channels of the output
  std::int64_t kernel = 0;    ///< rows and columns of a filter
  std::int64_t stride = 1;
  std::int64_t padding = 0;  ///< rows and columns of zeros on each side
  std::int64_t groups = 1;   ///< divides channels and filters
  bool relu = true;
  bool input_grad = true;  ///< false: nothing before this layer learns

  friend bool operator==(const ConvolutionLayer&, const ConvolutionLayer&) = default;
};

enum class PoolingKind : std::uint8_t { kMax, kAverage };

/// The largest, or the mean, of each window of an image, channel by channel; windows overlap where kernel > stride.
struct PoolingLayer {
  std::int64_t height = 0;  ///< rows of the input
  std::int64_t width = 0;   ///< columns of the input
  std::int64_t channels = 0;
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  PoolingKind pooling = PoolingKind::kMax;

  friend bool operator==(const PoolingLayer&, const PoolingLayer&) = default;
};

enum class Activation : std::uint8_t { kNone, kRelu, kGelu };

/// y = dropout(activation(x W^T + bias)), row by row. An image is a row, [height, width, channels] one after the other.
struct LinearLayer {
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = true;
  Activation activation = Activation::kNone;
  bool exact_gelu = false;  ///< GELU by erf instead of its tanh approximation
  double dropout = 0;
  bool input_grad = true;  ///< false: nothing before this layer learns

  friend bool operator==(const LinearLayer&, const LinearLayer&) = default;
};

/// y = x + W2 gelu(x W1^T + b1)^T + b2: the transformer's MLP without its norm.
struct MlpLayer {
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  bool exact_gelu = false;  ///< GELU by erf instead of its tanh approximation

  friend bool operator==(const MlpLayer&, const MlpLayer&) = default;
};

enum class LossKind : std::uint8_t { kSquaredError, kCrossEntropy };

/// The end of a model: the loss of each sample, which is mean((y - target)^2) over its `width` numbers, or the softmax
/// cross-entropy of `width` classes against its label.
struct LossLayer {
  std::int64_t width = 0;
  LossKind loss = LossKind::kCrossEntropy;

  friend bool operator==(const LossLayer&, const LossLayer&) = default;
};

using Layer = std::variant<EmbeddingLayer, TransformerLayer, HeadLayer, InputLayer, ConvolutionLayer, PoolingLayer,
                           LinearLayer, MlpLayer, LossLayer>;

/// Returns "embedding", "transformer", "head", "input", "convolution", "pooling", "linear", "mlp" or "loss".
std::string_view layer_kind_name(const Layer& layer);

/// True for the blocks between an embedding and a head, which full recomputation runs again as a whole.
inline bool is_block(const Layer& layer) {
  return std::holds_alternative<TransformerLayer>(layer);
}

/// Returns a block's state mixer if it is of that type; null otherwise.
template <class Mixer>
const Mixer* mixer_of(const Layer& layer) {
  const auto* block = std::get_if<TransformerLayer>(&layer);
  return block == nullptr ? nullptr : std::get_if<Mixer>(&block->states);
}

/// Return the probability of a layer's dropout, whether its GELU is exact, and the epsilon of its norms; 0 and false for
/// a layer without.
inline double dropout_of(const Layer& layer) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.dropout; })
          return kind.dropout;
        else
          return 0.0;
      },
      layer);
}
inline bool has_exact_gelu(const Layer& layer) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.exact_gelu; })
          return kind.exact_gelu;
        else
          return false;
      },
      layer);
}

inline double norm_epsilon_of(const Layer& layer) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.norm_epsilon; })
          return kind.norm_epsilon;
        else
          return 0.0;
      },
      layer);
}

/// Returns the number of windows of `kernel` in `size` rows or columns: floor((size + 2 padding - kernel) / stride) +
/// 1.
inline std::int64_t windows_in(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding = 0) {
  return (size + 2 * padding - kernel) / stride + 1;
}

}}  // namespace plumb::kernels
