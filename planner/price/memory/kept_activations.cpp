#include "planner/price/memory/kept_activations.h"

#include <algorithm>

#include "planner/price/framework/sizes.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the bytes that a block of products keeps of each row of `channels` behind its activation: the activation's
/// input, the gate's own result where the two factors are separate kernels, and the next product's input.
double block_bytes(const TransformerLayer& layer, const StackSpec& stack, double channels, SavedBytes bytes) {
  const double gate = stack.fused_activation || up_products(layer) == 1 ? 0 : 1;
  return channels * ((up_products(layer) + gate) * bytes.element + bytes.input);
}

/// Returns the copies of tokens that the rank's experts compute.
double expert_rows(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                   const RankSizes& sizes) {
  const double tokens = work.sequence_parallel ? sizes.tokens / work.tensor_parallel : sizes.tokens;
  return tokens * static_cast<double>(layer.experts_per_token) * work.experts.tensor * expert_load(layer, stack);
}

double expert_channels(const TransformerLayer& layer, const LayerWork& work) {
  return static_cast<double>(layer.expert_ffn) / work.experts.tensor;
}

/// Returns the bytes that experts keep of the copies of tokens that reach them.
double expert_bytes(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                    const RankSizes& sizes, SavedBytes bytes) {
  const double tokens = work.sequence_parallel ? sizes.tokens / work.tensor_parallel : sizes.tokens;
  const double channels = expert_channels(layer, work);
  const auto h = static_cast<double>(layer.hidden);
  // Experts keep the copies as sorted by expert (sending and sorting keep none), the block's tensors, and the operands
  // of the weighting: those of the combination, or the activation's result where a separate kernel multiplies it.
  const double product = stack.fused_activation ? 0 : channels;
  const double weighed = (stack.weighted_activations ? product : h) * bytes.element;
  const double routed =
      expert_rows(layer, work, stack, sizes) * (h * bytes.input + block_bytes(layer, stack, channels, bytes) + weighed);
  const double shared =
      sizes.tokens * block_bytes(layer, stack, static_cast<double>(layer.shared_ffn), bytes) / work.tensor_parallel;
  return routed + shared + tokens * static_cast<double>(layer.experts) * kFp32Bytes;
}

double latent_bytes(const TransformerLayer& layer, const RankSizes& sizes, SavedBytes bytes) {
  if (layer.kv_rank == 0) return 0;
  // Latent attention keeps compressed queries, keys and values before and behind their norms.
  const auto ranks = static_cast<double>(layer.query_rank + layer.kv_rank);
  return sizes.tokens *
         (ranks * (bytes.element + bytes.input) + static_cast<double>(layer.rotary_size) * bytes.element);
}

/// Returns the bytes of the inputs of the norms of queries and keys, and of the deviation (and mean) of each of their
/// rows.
double head_norm_bytes(const TransformerLayer& layer, const RankSizes& sizes, SavedBytes bytes) {
  if (layer.query_key_norms == QueryKeyNorms::kNone || layer.kv_rank > 0) return 0;
  const double statistics = layer.norm == NormKind::kLayerNorm ? 2 : 1;
  const double heads = sizes.heads + sizes.kv_heads;
  const double rows = layer.query_key_norms == QueryKeyNorms::kEachHead ? heads : 2;
  return sizes.tokens * (heads * static_cast<double>(layer.head_size) * bytes.element + rows * statistics * kFp32Bytes);
}

/// Returns the bytes of the results of the norms and of routed experts' activations.
double norms_and_activations_bytes(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                                   const RankSizes& sizes, SavedBytes bytes) {
  double activations = 0;
  if (layer.experts > 0)
    activations = expert_rows(layer, work, stack, sizes) * expert_channels(layer, work) * bytes.input;
  return sizes.halves * sizes.residual * bytes.input + activations;
}

/// Returns the bytes that torchtitan's per-operation checkpoints keep of a layer: its input, every second product
/// (queries, values, gate, down), attention's result with its log-sum-exp, and the results that the tensor group has
/// reduced.
double alternate_products_bytes(const TransformerLayer& layer, const LayerWork& work, const RankSizes& sizes,
                                double element) {
  const bool gated = layer.mlp == MlpKind::kSwiglu;
  const double values = sizes.kv_heads * static_cast<double>(layer.value_size > 0 ? layer.value_size : layer.head_size);
  const double reduced = work.tensor_parallel > 1 ? sizes.halves * sizes.residual : 0;
  const double products = sizes.tokens * (sizes.query + values + sizes.ffn) + (gated ? sizes.stream : 0);
  return (sizes.residual + reduced + products + sizes.tokens * sizes.value) * element +
         sizes.heads * sizes.tokens * kFp32Bytes;
}

/// Returns the bytes of attention's result, and of the copy of it that the next product takes where there is one.
double context_bytes(const StackSpec& stack, const RankSizes& sizes, SavedBytes bytes) {
  const bool fused = stack.attention != AttentionKernel::kUnfused;
  const bool copied = stack.copied_context || bytes.input != bytes.element;
  return sizes.value * sizes.tokens * (fused && copied ? bytes.element + bytes.input : bytes.input);
}

}  // namespace

KeptActivations kept_activations(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                                 Recompute recompute, SavedBytes bytes) {
  const RankSizes sizes = rank_sizes(layer, work);
  const double element = bytes.element;
  const double residual = sizes.residual * element;
  double core = 0;
  if (stack.attention == AttentionKernel::kUnfused) {
    const double scores = sizes.heads * sizes.tokens * static_cast<double>(work.sequence);
    core = scores * (layer.dropout > 0 ? 2 * element + 1 : element);
  } else {
    const bool dropped = recompute == Recompute::kSelective && stack.selective == SelectiveKind::kAttentionCore;
    if (!dropped) core = sizes.heads * sizes.tokens * kFp32Bytes;  // log-sum-exp
  }
  const double masks = layer.dropout > 0 ? sizes.halves * sizes.residual : 0;
  const double mlp = layer.experts > 0 ? expert_bytes(layer, work, stack, sizes, bytes)
                                       : sizes.tokens * block_bytes(layer, stack, sizes.ffn, bytes);
  const double norms = sizes.halves * sizes.residual * (element + bytes.input);  // inputs and results of the norms
  const double gates = sizes.gate * sizes.tokens * (element + bytes.input);      // and attention's gated result
  const double rest = norms + masks + gates + sizes.qkv * sizes.tokens * element + context_bytes(stack, sizes, bytes) +
                      mlp + latent_bytes(layer, sizes, bytes) + head_norm_bytes(layer, sizes, bytes);
  switch (recompute) {
    case Recompute::kNone:
      return {.kept = rest + core};
    case Recompute::kSelective: {
      if (stack.selective == SelectiveKind::kAttentionCore) return {.kept = rest, .rebuilt = core};
      if (stack.selective == SelectiveKind::kNormsAndActivations) {
        const double rebuilt = norms_and_activations_bytes(layer, work, stack, sizes, bytes);
        return {.kept = rest + core - rebuilt, .rebuilt = rebuilt};
      }
      const double kept = std::min(rest + core, alternate_products_bytes(layer, work, sizes, element));
      return {.kept = kept, .rebuilt = rest + core - kept};
    }
    case Recompute::kFull:
    case Recompute::kStage:
      return {.kept = residual, .rebuilt = rest + core - residual};
  }
  return {};
}

}}  // namespace plumb::planner
