#include "planner/cost/framework/framework_memory.h"

#include <algorithm>
#include <cmath>

#include "planner/cost/framework/sizes.h"

namespace plumb {
namespace {

std::int64_t whole(double bytes) {
  return std::llround(bytes);
}

struct Activations {
  double kept = 0;
  double rebuilt = 0;
};

/// What experts keep of the copies of tokens that reach them.
double expert_bytes(const TransformerLayer& layer, const LayerWork& work, const RankSizes& sizes, double element) {
  const double gates = layer.mlp == MlpKind::kSwiglu ? 2 : 1;
  const double tokens = work.sequence_parallel ? sizes.tokens / work.tensor_parallel : sizes.tokens;
  const double copies = tokens * static_cast<double>(layer.experts_per_token) * work.experts.tensor;
  const double channels = static_cast<double>(layer.expert_ffn) / work.experts.tensor;
  const auto h = static_cast<double>(layer.hidden);
  // Copies as sent and as sorted by expert, both gates, their product, and the results that the combination weighs.
  const double moved = work.experts.parallel > 1 ? 2 : 1;
  const double routed = copies * (moved * h + (gates + 1) * channels + h);
  const double shared = sizes.tokens * (gates + 1) * static_cast<double>(layer.shared_ffn) / work.tensor_parallel;
  constexpr double kSingle = 4;
  return (routed + shared) * element + tokens * static_cast<double>(layer.experts) * kSingle;
}

double latent_bytes(const TransformerLayer& layer, const RankSizes& sizes, double element) {
  if (layer.kv_rank == 0) return 0;
  // Compressed queries, keys and values before and behind their norms.
  const auto ranks = static_cast<double>(2 * layer.query_rank + 2 * layer.kv_rank + layer.rotary_size);
  return sizes.tokens * ranks * element;
}

Activations transformer_activations(const TransformerLayer& layer, const LayerWork& work, const StackSpec& stack,
                                    Recompute recompute, double element) {
  const RankSizes sizes = rank_sizes(layer, work);
  const double residual = sizes.residual * element;
  double core = 0;
  if (stack.attention == AttentionKernel::kUnfused) {
    const double scores = sizes.heads * sizes.tokens * static_cast<double>(work.sequence);
    core = scores * (layer.dropout > 0 ? 2 * element + 1 : element);
  } else {
    constexpr double kSingle = 4;
    if (recompute != Recompute::kSelective) core = sizes.heads * sizes.tokens * kSingle;  // log-sum-exp
  }
  const double masks = layer.dropout > 0 ? 2 * sizes.residual : 0;
  const double mlp =
      layer.experts > 0 ? expert_bytes(layer, work, sizes, element) : sizes.tokens * (sizes.up + sizes.ffn) * element;
  const double rest = 4 * residual + masks + (sizes.qkv + sizes.value) * sizes.tokens * element + mlp +
                      latent_bytes(layer, sizes, element);
  switch (recompute) {
    case Recompute::kNone:
      return {.kept = rest + core};
    case Recompute::kSelective:
      return {.kept = rest, .rebuilt = core};
    case Recompute::kFull:
      return {.kept = residual, .rebuilt = rest + core - residual};
  }
  return {};
}

std::int64_t share(std::int64_t total, int parts) {
  return (total + parts - 1) / parts;
}

/// What the layers of a stage add up to, in the order in which they come.
struct StageSum {
  std::int64_t parameters = 0;  ///< besides those of routed experts
  std::int64_t expert_parameters = 0;
  std::int64_t last_layer = 0;
  std::int64_t largest_layer = 0;
  std::int64_t largest_pair = 0;  ///< of neighbours
  double kept = 0;                ///< bytes of a micro-batch
  double rebuilt = 0;
  double largest_rebuilt = 0;
  double at_loss = 0;
  double table_gradient = 0;
};

struct MemoryContext {
  const StackSpec& stack;
  const Layout& layout;
  LayerWork work;
  double element = 0;

  /// Elements of a residual stream of that width.
  double stream(std::int64_t hidden) const {
    const double tokens = static_cast<double>(work.microbatch * work.sequence) / work.context_parallel;
    return tokens * static_cast<double>(hidden) / (work.sequence_parallel ? work.tensor_parallel : 1);
  }

  /// Rows of a table on one rank, padded as the stack does.
  std::int64_t rows(std::int64_t vocab) const { return padded_vocab(stack, vocab, layout.tensor) / layout.tensor; }
};

void add_state(StageSum& sum, std::int64_t parameters, std::int64_t experts) {
  const std::int64_t layer = parameters + experts;
  sum.parameters += parameters;
  sum.expert_parameters += experts;
  sum.largest_layer = std::max(sum.largest_layer, layer);
  sum.largest_pair = std::max(sum.largest_pair, sum.last_layer + layer);
  sum.last_layer = layer;
}

void add_layer(StageSum& sum, const EmbeddingLayer& layer, const MemoryContext& context) {
  const std::int64_t rows = context.rows(layer.vocab);
  const std::int64_t padding = rows - share(layer.vocab, context.layout.tensor);
  add_state(sum, parameter_count(layer, context.layout.tensor) + padding * layer.hidden, 0);
  sum.table_gradient = context.stack.embedding_gradient_bytes * static_cast<double>(rows * layer.hidden);
  if (layer.dropout > 0) sum.kept += context.stream(layer.hidden);  // a mask of one byte
}

void add_layer(StageSum& sum, const HeadLayer& layer, const MemoryContext& context, bool shares_table) {
  const std::int64_t rows = context.rows(layer.vocab);
  const std::int64_t padding = rows - share(layer.vocab, context.layout.tensor);
  const std::int64_t shared = shares_table ? rows * layer.hidden : 0;
  add_state(sum, parameter_count(layer, context.layout.tensor) + padding * layer.hidden - shared, 0);
  const double logits = static_cast<double>(context.work.microbatch * context.work.sequence) /
                        context.work.context_parallel * static_cast<double>(rows);
  sum.at_loss = context.stack.logit_bytes * logits + 2 * context.stream(layer.hidden) * context.element;
}

/// One transformer layer's share, which its neighbours that are alike have too.
struct TransformerShare {
  std::int64_t parameters = 0;
  std::int64_t expert_parameters = 0;
  Activations held;
};

TransformerShare transformer_share(const TransformerLayer& layer, const MemoryContext& context) {
  const std::int64_t experts = expert_parameter_count(layer, context.work.experts);
  return {
      .parameters = parameter_count(layer, context.layout.tensor, context.work.experts) - experts,
      .expert_parameters = experts,
      .held = transformer_activations(layer, context.work, context.stack, context.layout.recompute, context.element)};
}

void add_layer(StageSum& sum, const TransformerShare& share) {
  add_state(sum, share.parameters, share.expert_parameters);
  sum.kept += share.held.kept;
  sum.rebuilt += share.held.rebuilt;
  sum.largest_rebuilt = std::max(sum.largest_rebuilt, share.held.rebuilt);
}

}  // namespace

StageMemory framework_memory(const std::vector<Layer>& layers, const TrainingSpec& training, const StackSpec& stack,
                             const Layout& layout, BackwardForm backward) {
  const std::int64_t element = bytes_per_element(training.precision);
  const MemoryContext context{stack, layout, work_of(training, layout), static_cast<double>(element)};
  StageSum sum;
  const TransformerLayer* previous = nullptr;
  TransformerShare share_of_previous;
  for (const Layer& layer : layers) {
    if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer)) {
      add_layer(sum, *embedding, context);
    } else if (const auto* head = std::get_if<HeadLayer>(&layer)) {
      // One table serves both ends of a stage.
      add_layer(sum, *head, context, head->tied && std::holds_alternative<EmbeddingLayer>(layers.front()));
    } else {
      const auto& transformer = std::get<TransformerLayer>(layer);
      if (previous == nullptr || !(*previous == transformer)) {
        share_of_previous = transformer_share(transformer, context);
      }
      previous = &transformer;
      add_layer(sum, share_of_previous);
    }
  }

  const int replicas = layout.data * layout.context;
  const int expert_replicas = expert_grid_of(layout).data;
  const auto state = [&](int from_stage, std::int64_t bytes) {
    const bool sharded = layout.zero >= from_stage;
    return (share(sum.parameters, sharded ? replicas : 1) +
            share(sum.expert_parameters, sharded ? expert_replicas : 1)) *
           bytes;
  };
  const std::int64_t gradient = bytes_per_element(training.gradient_precision);
  const bool all_rebuilt = backward.split || backward.recompute_actions;
  StageMemory memory;
  memory.parameter_bytes = state(3, element);
  memory.gradient_bytes = state(2, gradient) + (layout.pipeline > 1 ? whole(sum.table_gradient) : 0);
  memory.optimizer_bytes = state(1, optimizer_bytes_per_parameter(training));
  memory.forward_bytes = whole(sum.kept);
  memory.recompute_bytes = whole(all_rebuilt ? sum.rebuilt : sum.largest_rebuilt);
  memory.forward_workspace_bytes = memory.backward_workspace_bytes = whole(sum.at_loss);
  if (layout.zero >= 2 && replicas > 1) memory.backward_workspace_bytes += sum.largest_layer * gradient;
  if (layout.zero >= 3 && replicas > 1) memory.unsharded_bytes = sum.largest_pair * element;
  return memory;
}

}  // namespace plumb
