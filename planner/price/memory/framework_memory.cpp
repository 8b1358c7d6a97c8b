#include "planner/price/memory/framework_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/price/memory/backward_moments.h"
#include "planner/price/memory/kept_activations.h"
#include "planner/price/memory/stage_memory.h"
#include "planner/spec/training_spec.h"
#include "schedules/units.h"

namespace plumb { inline namespace planner {
namespace {

std::int64_t whole(double bytes) {
  return std::llround(bytes);
}

/// Sums and maxima over the layers of a stage, in the order in which they come.
struct StageSum {
  std::int64_t parameters = 0;  ///< besides those of routed experts
  std::int64_t expert_parameters = 0;
  std::int64_t last_layer = 0;
  std::int64_t largest_layer = 0;
  std::int64_t largest_pair = 0;   ///< largest sum of two neighbours
  std::int64_t largest_inner = 0;  ///< largest transformer layer
  std::int64_t tables = 0;         ///< parameters of the model's two ends
  double kept = 0;                 ///< bytes of a micro-batch
  double rebuilt = 0;
  double largest_rebuilt = 0;
  double at_loss = 0;
  double head_backward = 0;
  double layer_backward = 0;
  double released = 0;      ///< part of `kept` that goes with I
  double score_buffer = 0;  ///< held throughout
  double table_gradient = 0;
  std::int64_t largest_tensor = 0;   ///< parameters of the largest single weight
  double output = 0;                 ///< the stage's output
  std::vector<WeightShape> weights;  ///< weights of products
};

struct MemoryContext {
  const StackSpec& stack;
  const Layout& layout;
  LayerWork work;
  double element = 0;
  double saved_input = 0;  ///< bytes an element that products keep

  /// Returns the elements of a residual stream of that width.
  double stream(std::int64_t hidden) const {
    const double tokens = static_cast<double>(work.microbatch * work.sequence) / work.context_parallel;
    return tokens * static_cast<double>(hidden) / (work.sequence_parallel ? work.tensor_parallel : 1);
  }

  /// Returns the rows of a table on one rank, padded as the stack pads them.
  std::int64_t rows(std::int64_t vocab) const { return padded_vocab(stack, vocab, layout.tensor) / layout.tensor; }
};

FrameworkFootprint embedding_footprint(const EmbeddingLayer& layer, const MemoryContext& context) {
  const std::int64_t rows = context.rows(layer.vocab);
  const std::int64_t padding = rows - largest_share(layer.vocab, context.layout.tensor);
  return {.place = FrameworkFootprint::Place::kFirst,
          .parameters = parameter_count(layer, context.layout.tensor) + padding * layer.hidden,
          .largest_tensor = rows * layer.hidden,
          .kept = (layer.dropout > 0 ? context.stream(layer.hidden) : 0) +  // a mask of one byte
                  context.stack.embedding_outputs * context.stream(layer.hidden) * context.element,
          .table_gradient = context.stack.embedding_gradient_bytes * static_cast<double>(rows * layer.hidden)};
}

FrameworkFootprint head_footprint(const HeadLayer& layer, const MemoryContext& context) {
  const std::int64_t rows = context.rows(layer.vocab);
  const std::int64_t padding = rows - largest_share(layer.vocab, context.layout.tensor);
  const double logits = static_cast<double>(context.work.microbatch * context.work.sequence) /
                        context.work.context_parallel * static_cast<double>(rows);
  const double residual = context.stream(layer.hidden);
  const double stream = context.work.sequence_parallel ? residual * context.work.tensor_parallel : residual;
  return {.place = FrameworkFootprint::Place::kLast,
          .parameters = parameter_count(layer, context.layout.tensor) + padding * layer.hidden,
          .shared_parameters = layer.tied ? rows * layer.hidden : 0,
          .largest_tensor = rows * layer.hidden,
          .output = context.stack.kept_logits && context.layout.pipeline > 1 ? logits * context.element : 0,
          .at_loss = context.stack.logit_bytes * logits * (context.stack.gathered_logits ? context.layout.tensor : 1) +
                     2 * residual * context.element,
          .head_backward = head_backward_bytes(layer, context.stack, logits, static_cast<double>(rows), stream,
                                               residual, context.element)};
}

/// Returns the bytes that a layer frees before W: all that it kept except what W needs. 0 with recomputation, experts
/// and latent attention, for which this is not known.
double released_bytes(const TransformerLayer& layer, const MemoryContext& context, const KeptActivations& held) {
  const double needed = weight_grad_bytes(layer, context.work, context.element);
  const bool known = context.layout.recompute == Recompute::kNone && needed > 0;
  return known ? std::max(0.0, held.kept - needed) : 0;
}

/// Returns the bytes of a stage's kept output. A pipeline that sends 1/t of it from each tensor rank keeps no more of
/// it.
double kept_output(const TransformerLayer& layer, const MemoryContext& context) {
  const bool divided = context.stack.scattered_messages && !context.work.sequence_parallel;
  return context.stream(layer.hidden) * context.element / (divided ? context.work.tensor_parallel : 1);
}

std::int64_t largest_weight(const TransformerLayer& layer, const LayerWork& work) {
  double elements = 0;
  for (const auto& [rows, columns] : weight_shapes(layer, work)) elements = std::max(elements, rows * columns);
  return whole(elements);
}

FrameworkFootprint transformer_footprint(const TransformerLayer& layer, const MemoryContext& context) {
  const std::int64_t experts = expert_parameter_count(layer, context.work.experts);
  KeptActivations held = kept_activations(layer, context.work, context.stack, context.layout.recompute,
                                          {context.element, context.saved_input});
  const double products = layer_backward_bytes(layer, context.work, context.stack, context.element);
  const auto with_attention = [&](bool split) {
    return std::max(products, attention_backward_bytes(layer, context.work, context.stack, split, context.element));
  };
  const double scores = score_elements(layer, context.work, context.stack) * context.element;
  const double released = released_bytes(layer, context, held);
  const double away = context.stack.offloaded_share * held.kept;  // it comes back for the layer's backward
  held.kept -= away;
  held.rebuilt += away;
  return {
      .parameters = parameter_count(layer, context.layout.tensor, context.work.experts) - experts,
      .expert_parameters = experts,
      .largest_tensor = context.stack.norm_bytes > 0 ? largest_weight(layer, context.work) : 0,
      .kept = held.kept,
      .rebuilt = held.rebuilt,
      .released = released * (1 - context.stack.offloaded_share),
      .backward = with_attention(false),
      .split_backward = with_attention(true),
      .score_buffer = context.stack.score_buffer ? scores : 0,
      .output = context.stack.kept_outputs ? kept_output(layer, context) : 0,
      .weights = context.stack.kept_weight_gradients ? weight_shapes(layer, context.work) : std::vector<WeightShape>{}};
}

/// A state mixer with its norm and its residual keeps what its layer program keeps.
FrameworkFootprint states_footprint(const TransformerLayer& layer, const MemoryContext& context) {
  const LayerProgram program = layer_program(layer, context.work);
  const auto element = static_cast<std::int64_t>(context.element);
  FrameworkFootprint footprint{
      .parameters = parameter_count(layer, context.layout.tensor),
      .backward = static_cast<double>(workspace_bytes(program, Pass::kInputGrad, element)),
      .output = context.stack.kept_outputs ? context.stream(layer.hidden) * context.element : 0};
  for (const SavedTensor& tensor : saved_tensors(program, context.layout.recompute)) {
    if (tensor.from_input_grad) continue;
    const auto bytes = static_cast<double>(tensor.bytes(element));
    (tensor.recomputed ? footprint.rebuilt : footprint.kept) += bytes;
    if (!tensor.needed_by_weight_grad) footprint.released += bytes;
  }
  footprint.split_backward = footprint.backward;
  for (const ParameterTensor& tensor : program.parameters) {
    if (context.stack.norm_bytes > 0)
      footprint.largest_tensor = std::max(footprint.largest_tensor, element_count(tensor));
    if (context.stack.kept_weight_gradients && !tensor.is_vector())
      footprint.weights.push_back({static_cast<double>(tensor.shape[0]), static_cast<double>(tensor.shape[1])});
  }
  return footprint;
}

FrameworkFootprint block_footprint(const TransformerLayer& layer, const MemoryContext& context) {
  if (!layer.mixes_states()) return transformer_footprint(layer, context);
  const FrameworkFootprint states = states_footprint(states_alone(layer), context);
  if (layer.heads == 0 && !layer.feeds_forward()) return states;
  TransformerLayer others = layer;
  others.states = {};
  FrameworkFootprint both = transformer_footprint(others, context);
  both.parameters = parameter_count(layer, context.layout.tensor, context.work.experts) - both.expert_parameters;
  both.largest_tensor = std::max(both.largest_tensor, states.largest_tensor);
  both.kept += states.kept;
  both.rebuilt += states.rebuilt;
  both.released += states.released;
  const double stream = context.stream(layer.hidden);
  if (context.layout.recompute == Recompute::kFull) {  // the block's input is kept once
    both.kept -= stream * context.element;
    both.rebuilt += stream * context.element;
  } else if (layer.heads > 0) {  // attention and states read one norm's output
    both.kept -= stream * (context.element + context.saved_input);
  }
  both.backward = std::max(both.backward, states.backward);
  both.split_backward = std::max(both.split_backward, states.split_backward);
  both.weights.insert(both.weights.end(), states.weights.begin(), states.weights.end());
  return both;
}

/// Adds a layer to the sums. `shares_table`: one table serves both ends of a stage.
void add_layer(StageSum& sum, const FrameworkFootprint& layer, bool shares_table, bool split) {
  const std::int64_t parameters = layer.parameters - (shares_table ? layer.shared_parameters : 0);
  const std::int64_t whole = parameters + layer.expert_parameters;
  sum.parameters += parameters;
  sum.expert_parameters += layer.expert_parameters;
  sum.largest_layer = std::max(sum.largest_layer, whole);
  sum.largest_pair = std::max(sum.largest_pair, sum.last_layer + whole);
  sum.last_layer = whole;
  if (layer.place == FrameworkFootprint::Place::kInner)
    sum.largest_inner = std::max(sum.largest_inner, whole);
  else
    sum.tables += parameters;
  sum.kept += layer.kept;
  sum.rebuilt += layer.rebuilt;
  sum.largest_rebuilt = std::max(sum.largest_rebuilt, layer.rebuilt);
  sum.layer_backward = std::max(sum.layer_backward, split ? layer.split_backward : layer.backward);
  sum.released += split ? layer.released : 0;
  sum.score_buffer = std::max(sum.score_buffer, layer.score_buffer);
  sum.output = layer.output;
  sum.at_loss = std::max(sum.at_loss, layer.at_loss);
  sum.head_backward = std::max(sum.head_backward, layer.head_backward);
  sum.table_gradient = std::max(sum.table_gradient, layer.table_gradient);
  sum.largest_tensor = std::max(sum.largest_tensor, layer.largest_tensor);
}

/// Returns the bytes of optimizer state. `state(stage, bytes)`: so many bytes of each parameter that a rank holds from
/// that ZeRO stage on.
template <class State>
std::int64_t optimizer_state(const TrainingSpec& training, const StackSpec& stack, State&& state) {
  const std::int64_t masters = bytes_per_element(training.precision) < kFp32Bytes ? kFp32Bytes : 0;
  const std::int64_t moments = optimizer_bytes_per_parameter(training) - masters;
  if (stack.state_bytes > 0) return whole(stack.state_bytes * static_cast<double>(state(1, 1)));
  if (!stack.replicated_masters) return state(1, moments + masters);
  return state(1, moments) + state(3, masters);
}

/// Returns the bytes that the optimizer holds besides its state at the step of the rank's `stepped` parameters. The
/// norm of one tensor (under ZeRO) is gone before the copies of all of them are made, and these fit into its place.
std::int64_t at_step(const StageSum& sum, const StackSpec& stack, int zero, std::int64_t stepped) {
  const double norm = stack.norm_bytes * static_cast<double>(std::min(sum.largest_tensor, stepped));
  const double copies = stack.step_bytes * static_cast<double>(stepped);
  return whole(zero >= 1 ? std::max(norm, copies) + stack.bucket_mib * kMebibyte : copies);
}

}  // namespace

FrameworkFootprint framework_footprint(const Layer& layer, const TrainingSpec& training, const StackSpec& stack,
                                       const Layout& layout) {
  const auto element = static_cast<double>(bytes_per_element(training.precision));
  const double saved = stack.fp8_saved ? quantized_bytes(training.precision) : element;
  const MemoryContext context{stack, layout, work_of(training, layout), element, saved};
  if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer)) return embedding_footprint(*embedding, context);
  if (const auto* head = std::get_if<HeadLayer>(&layer)) return head_footprint(*head, context);
  return block_footprint(std::get<TransformerLayer>(layer), context);
}

StageMemory framework_memory(const std::vector<Layer>& layers, const TrainingSpec& training, const StackSpec& stack,
                             const Layout& layout, BackwardForm backward) {
  std::vector<FrameworkFootprint> kinds;
  std::vector<int> order;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i == 0 || !(layers[i] == layers[i - 1]))
      kinds.push_back(framework_footprint(layers[i], training, stack, layout));
    order.push_back(static_cast<int>(kinds.size()) - 1);
  }
  return framework_memory(kinds, order, training, stack, layout, backward);
}

StageMemory framework_memory(const std::vector<FrameworkFootprint>& kinds, std::span<const int> layers,
                             const TrainingSpec& training, const StackSpec& stack, const Layout& layout,
                             BackwardForm backward) {
  const std::int64_t element = bytes_per_element(training.precision);
  const auto element_bytes = static_cast<double>(element);
  StageSum sum;
  const bool has_table = kinds[layers.front()].place == FrameworkFootprint::Place::kFirst;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const FrameworkFootprint& layer = kinds[layers[i]];
    if (i == 0 || layers[i] != layers[i - 1])
      sum.weights.insert(sum.weights.end(), layer.weights.begin(), layer.weights.end());
    add_layer(sum, layer, has_table, backward.split);
  }

  const int shards = state_shards(layout);
  const int expert_shards = expert_state_shards(layout);
  const auto state = [&](int from_stage, std::int64_t bytes) {
    const bool sharded = layout.zero >= from_stage;
    return (largest_share(sum.parameters, sharded ? shards : 1) +
            largest_share(sum.expert_parameters, sharded ? expert_shards : 1)) *
           bytes;
  };
  const std::int64_t gradient = bytes_per_element(training.gradient_precision);
  const bool all_rebuilt = backward.split || backward.recompute_actions;
  StageMemory memory;
  const bool gathers = layout.zero >= 3 && shards > 1;
  memory.parameter_bytes = gathers && stack.sharded_masters ? 0 : state(3, element);
  const bool adds_whole =
      stack.whole_gradients && layout.zero >= 2 && shards > 1 && microbatches_of(training, layout) > 1;
  const std::int64_t reduced_bytes = stack.gradient_bytes > 0 ? stack.gradient_bytes : gradient;
  memory.gradient_bytes = (adds_whole ? state(4, reduced_bytes) : state(2, gradient)) +
                          whole(distinct_elements(std::move(sum.weights)) * element_bytes);
  memory.gradient_bytes += whole(stack.copied_gradient_bytes * static_cast<double>(state(2, 1)));
  memory.optimizer_bytes = optimizer_state(training, stack, state) + at_step(sum, stack, layout.zero, state(1, 1));
  const bool has_head = kinds[layers.back()].place == FrameworkFootprint::Place::kLast;
  memory.forward_bytes = whole(sum.kept + (has_head ? 0 : sum.output));
  memory.released_at_input_grad_bytes = whole(sum.released);
  memory.recompute_bytes = whole(all_rebuilt ? sum.rebuilt : sum.largest_rebuilt);
  memory.forward_workspace_bytes = whole(sum.at_loss);
  // The workspace is the largest of a backward's moments: the loss, the head and the table with nothing rebuilt (the
  // table with the micro-batch's other tensors gone), and a layer with its rebuilt tensors.
  const std::int64_t rebuilt_later = backward.recompute_actions ? 0 : memory.recompute_bytes;
  const bool reduces = layout.zero >= 2 && shards > 1;
  const std::int64_t reduced = stack.tables_stay_gathered ? sum.largest_inner : sum.largest_layer;
  const double cached = stack.cached_moments ? sum.layer_backward : 0;
  const double at_ends = std::max({sum.at_loss, sum.head_backward, sum.table_gradient - sum.kept}) + cached;
  memory.backward_workspace_bytes =
      std::max(whole(sum.layer_backward) + (reduces ? reduced * gradient : 0), whole(at_ends) - rebuilt_later);
  // The logits of all micro-batches wait for the end of the step.
  const bool waits = has_head && sum.output > 0;
  const double logits = waits ? static_cast<double>(microbatches_of(training, layout)) * sum.output : 0;
  const std::int64_t throughout = whole(stack.workspace_mib * kMebibyte + sum.score_buffer + logits);
  memory.forward_workspace_bytes += throughout;
  memory.backward_workspace_bytes += throughout;
  if (gathers) {
    memory.unsharded_bytes =
        (stack.tables_stay_gathered ? sum.tables + 2 * sum.largest_inner : sum.largest_pair) * element;
  }
  return memory;
}

}}  // namespace plumb::planner
