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
    core = 0;
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

}  // namespace

StageMemory framework_memory(const std::vector<Layer>& layers, const TrainingSpec& training, const StackSpec& stack,
                             const Layout& layout, BackwardForm backward) {
  const LayerWork work = work_of(training, layout);
  const auto element = static_cast<double>(bytes_per_element(training.precision));
  const double tokens = static_cast<double>(work.microbatch * work.sequence) / work.context_parallel;
  const int replicas = layout.data * layout.context;
  const int expert_replicas = expert_grid_of(layout).data;

  StageMemory memory;
  std::int64_t parameters = 0, expert_parameters = 0, largest = 0, before = 0, largest_pair = 0;
  double rebuilt_all = 0, rebuilt_largest = 0, at_loss = 0, table_gradient = 0, kept = 0;
  for (const Layer& layer : layers) {
    const std::int64_t experts = expert_parameter_count(layer, work.experts);
    std::int64_t count = parameter_count(layer, layout.tensor, work.experts) - experts;
    if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer)) {
      const std::int64_t rows = padded_vocab(stack, embedding->vocab, layout.tensor) / layout.tensor;
      count += (rows - share(embedding->vocab, layout.tensor)) * embedding->hidden;
      table_gradient = stack.embedding_gradient_bytes * static_cast<double>(rows * embedding->hidden);
      const double stream =
          tokens * static_cast<double>(embedding->hidden) / (work.sequence_parallel ? work.tensor_parallel : 1);
      if (embedding->dropout > 0) kept += stream;  // a mask of one byte
    } else if (const auto* head = std::get_if<HeadLayer>(&layer)) {
      const std::int64_t rows = padded_vocab(stack, head->vocab, layout.tensor) / layout.tensor;
      count += (rows - share(head->vocab, layout.tensor)) * head->hidden;
      if (head->tied && layers.size() > 1 && std::holds_alternative<EmbeddingLayer>(layers.front())) {
        count -= rows * head->hidden;  // one table serves both ends of a stage
      }
      const double stream =
          tokens * static_cast<double>(head->hidden) / (work.sequence_parallel ? work.tensor_parallel : 1);
      at_loss = stack.logit_bytes * tokens * static_cast<double>(rows) + 2 * stream * element;
    } else {
      const Activations held =
          transformer_activations(std::get<TransformerLayer>(layer), work, stack, layout.recompute, element);
      kept += held.kept;
      rebuilt_all += held.rebuilt;
      rebuilt_largest = std::max(rebuilt_largest, held.rebuilt);
    }
    parameters += count;
    expert_parameters += experts;
    largest = std::max(largest, count + experts);
    largest_pair = std::max(largest_pair, before + count + experts);
    before = count + experts;
  }
  memory.forward_bytes = whole(kept);
  memory.recompute_bytes = whole(backward.split || backward.recompute_actions ? rebuilt_all : rebuilt_largest);
  if (backward.split) memory.released_at_input_grad_bytes = 0;  // frameworks release a layer's tensors at W
  memory.forward_workspace_bytes = memory.backward_workspace_bytes = whole(at_loss);

  const auto state = [&](int from_stage, std::int64_t bytes) {
    const bool sharded = layout.zero >= from_stage;
    return (share(parameters, sharded ? replicas : 1) + share(expert_parameters, sharded ? expert_replicas : 1)) *
           bytes;
  };
  const std::int64_t gradient = bytes_per_element(training.gradient_precision);
  memory.parameter_bytes = state(3, static_cast<std::int64_t>(element));
  memory.gradient_bytes = state(2, gradient);
  memory.optimizer_bytes = state(1, optimizer_bytes_per_parameter(training));
  const bool pipelined = layout.pipeline > 1;
  if (pipelined) memory.gradient_bytes += whole(table_gradient);
  if (layout.zero >= 2 && replicas > 1) memory.backward_workspace_bytes += largest * gradient;
  if (layout.zero >= 3 && replicas > 1) memory.unsharded_bytes = largest_pair * static_cast<std::int64_t>(element);
  constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
  memory.parameter_bytes += whole(stack.context_gib * kGibibyte);
  return memory;
}

}  // namespace plumb
