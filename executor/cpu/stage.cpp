#include "executor/cpu/stage.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace plumb {
namespace {

std::int64_t scratch_elements(const std::vector<Layer>& layers, std::int64_t microbatch, std::int64_t sequence) {
  std::int64_t elements = 0;
  for (const Layer& layer : layers)
    if (const auto* block = std::get_if<TransformerLayer>(&layer))
      elements = std::max(elements, attention_scratch_elements({.batch = microbatch,
                                                                .sequence = sequence,
                                                                .heads = block->heads,
                                                                .kv_heads = block->kv_heads,
                                                                .head_size = block->head_size,
                                                                .window = block->window}));
  return elements;
}

std::int64_t hidden_of(const Layer& layer) {
  return std::visit([](const auto& kind) { return kind.hidden; }, layer);
}

std::vector<CpuContext> slice_contexts(const CpuStageOptions& options, TensorPool& pool, float* scratch) {
  std::vector<CpuContext> contexts;
  for (int slice = 0; slice < options.slices; ++slice) {
    const TokenRange tokens = slice_tokens(options.sequence, options.slices, slice);
    contexts.push_back({.kernels = CpuKernelSet(options.kernel_log),
                        .pool = &pool,
                        .work = {.microbatch = options.microbatch, .sequence = tokens.count},
                        .scratch = scratch,
                        .first_token = tokens.first,
                        .whole_sequence = options.slices > 1 ? options.sequence : 0});
  }
  return contexts;
}

/// All that a layer saved, in one order.
std::vector<Tensor*> tensors_of(EmbeddingSaved& saved) {
  return {&saved.tokens, &saved.output_gradient};
}
std::vector<Tensor*> tensors_of(TransformerSaved& saved) {
  return {&saved.input,    &saved.norm1_statistics, &saved.norm1_output,
          &saved.qkv,      &saved.log_sum_exp,      &saved.attention_output,
          &saved.residual, &saved.norm2_statistics, &saved.norm2_output,
          &saved.up,       &saved.activation,       &saved.output_gradient};
}
std::vector<Tensor*> tensors_of(HeadSaved& saved) {
  return {&saved.input, &saved.norm_statistics, &saved.norm_output, &saved.logits};
}

/// Takes the input back out of what a layer saved.
Tensor take_input(EmbeddingSaved&) {
  return {};
}
Tensor take_input(TransformerSaved& saved) {
  return std::move(saved.input);
}
Tensor take_input(HeadSaved& saved) {
  return std::move(saved.input);
}

}  // namespace

CpuStage::CpuStage(CpuStageOptions options, TensorPool& pool)
    : options_(std::move(options)),
      pool_(pool),
      scratch_(static_cast<std::size_t>(scratch_elements(options_.layers, options_.microbatch, options_.sequence))),
      contexts_(slice_contexts(options_, pool, scratch_.data())),
      parameters_({.layers = options_.layers,
                   .first_layer = options_.first_layer,
                   .optimizer = options_.optimizer,
                   .seed = options_.seed},
                  pool),
      states_(options_.weight_versions.size() * contexts_.size()) {
  for (const Layer& layer : options_.layers) {
    if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer)) layers_.emplace_back(CpuEmbedding(*embedding));
    if (const auto* block = std::get_if<TransformerLayer>(&layer))
      layers_.emplace_back(CpuTransformer(*block, options_.sequence));
    if (const auto* head = std::get_if<HeadLayer>(&layer)) layers_.emplace_back(CpuHead(*head));
  }
  for (State& state : states_)
    for (const CpuLayer& layer : layers_)
      std::visit([&](const auto& kind) { state.saved.emplace_back(typename std::decay_t<decltype(kind)>::Saved{}); },
                 layer);
  if (options_.slices > 1) sequences_.resize(options_.weight_versions.size());
  for (std::vector<SequenceSaved>& layers : sequences_) layers.resize(layers_.size());
}

void CpuStage::begin(std::int64_t step) {
  step_ = step;
  std::vector<int> uses;  // [version]
  for (const int version : options_.weight_versions) {
    if (version < 0) continue;
    uses.resize(std::max(uses.size(), static_cast<std::size_t>(version) + 1));
    uses[static_cast<std::size_t>(version)] += options_.slices;
  }
  parameters_.begin(std::move(uses));
  for (State& state : states_) {  // without a backward, what F kept is still there
    for (SavedLayer& saved : state.saved) std::visit([](auto& kind) { kind = {}; }, saved);
    state.input = {};
    state.loss = 0;
    state.is_rebuilt = false;
  }
  for (std::vector<SequenceSaved>& layers : sequences_)
    for (SequenceSaved& saved : layers) saved = {};
}

SequenceSaved* CpuStage::sequence_of(std::size_t layer, MicrobatchSlice of) {
  return sequences_.empty() ? nullptr : &sequences_[static_cast<std::size_t>(of.microbatch)][layer];
}

double CpuStage::loss(int microbatch) const {
  double sum = 0;
  for (std::size_t slice = 0; slice < contexts_.size(); ++slice)
    sum += states_[index_of({microbatch, static_cast<int>(slice)})].loss;
  return sum;
}

std::vector<Tensor*> CpuStage::activations_of(MicrobatchSlice of) {
  std::vector<Tensor*> tensors{&at(of).input};
  for (SavedLayer& layer : at(of).saved)
    std::visit([&](auto& saved) { std::ranges::copy(tensors_of(saved), std::back_inserter(tensors)); }, layer);
  return tensors;
}

std::vector<Tensor> CpuStage::take_activations(MicrobatchSlice of) {
  std::vector<Tensor> taken;
  for (Tensor* tensor : activations_of(of)) taken.push_back(std::move(*tensor));
  return taken;
}

void CpuStage::put_activations(MicrobatchSlice of, std::vector<Tensor> activations) {
  const std::vector<Tensor*> places = activations_of(of);
  assert(places.size() == activations.size());
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = std::move(activations[i]);
}

BatchPlace CpuStage::place_of(MicrobatchSlice of) const {
  return {.seed = options_.seed,
          .step = step_,
          .first_sample = options_.first_sample + of.microbatch * options_.microbatch,
          .count = options_.microbatch,
          .sequence = options_.sequence,
          .slice = slice_tokens(options_.sequence, options_.slices, of.slice)};
}

Tensor CpuStage::layer_forward(std::size_t layer, MicrobatchSlice of, Tensor input) {
  State& state = at(of);
  const float* weights = parameters_.weights(version_of(of), layer);
  const CpuContext& context = context_of(of);
  const std::int64_t tokens = options_.microbatch * context.work.sequence;
  if (const auto* embedding = std::get_if<CpuEmbedding>(&layers_[layer])) {
    EmbeddingSaved& saved = std::get<EmbeddingSaved>(state.saved[layer]);
    saved.tokens = pool_.take(tokens);
    fill_inputs({saved.tokens.tokens(), static_cast<std::size_t>(tokens)}, options_.text, place_of(of));
    return embedding->forward(context, weights, saved);
  }
  if (const auto* block = std::get_if<CpuTransformer>(&layers_[layer]))
    return block->forward(context, weights, std::move(input), std::get<TransformerSaved>(state.saved[layer]),
                          sequence_of(layer, of));
  Tensor targets = pool_.take(tokens);
  fill_targets({targets.tokens(), static_cast<std::size_t>(tokens)}, options_.text, place_of(of));
  state.loss = std::get<CpuHead>(layers_[layer])
                   .forward(context, weights, std::move(input), targets,
                            options_.gradient_scales[static_cast<std::size_t>(of.microbatch)],
                            std::get<HeadSaved>(state.saved[layer]));
  return {};
}

Tensor CpuStage::run_forward(MicrobatchSlice of, Tensor input, bool keep) {
  State& state = at(of);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    input = layer_forward(layer, of, std::move(input));
    if (keep) continue;
    std::visit(
        [&](auto& saved) {
          if (layer == 0) state.input = take_input(saved);
          saved = {};
        },
        state.saved[layer]);
  }
  return input;
}

Tensor CpuStage::forward(MicrobatchSlice of, Tensor input) {
  return run_forward(of, std::move(input), options_.rebuild == Rebuild::kNothing);
}

void CpuStage::recompute(MicrobatchSlice of) {
  State& state = at(of);
  const double loss = state.loss;
  run_forward(of, std::move(state.input), true);
  state.loss = loss;
  state.is_rebuilt = true;
}

void CpuStage::rebuild_if_needed(MicrobatchSlice of) {
  if (options_.rebuild == Rebuild::kStage && !at(of).is_rebuilt) recompute(of);
}

Tensor CpuStage::layer_input_grad(std::size_t layer, MicrobatchSlice of, Tensor output_gradient) {
  SavedLayer& saved = at(of).saved[layer];
  const float* weights = parameters_.weights(version_of(of), layer);
  float* gradients = parameters_.gradients(layer);
  if (std::holds_alternative<CpuEmbedding>(layers_[layer])) {
    std::get<EmbeddingSaved>(saved).output_gradient = std::move(output_gradient);
    return {};
  }
  if (const auto* block = std::get_if<CpuTransformer>(&layers_[layer]))
    return block->input_grad(context_of(of), weights, gradients, std::move(output_gradient),
                             std::get<TransformerSaved>(saved), sequence_of(layer, of));
  return std::get<CpuHead>(layers_[layer]).input_grad(context_of(of), weights, gradients, std::get<HeadSaved>(saved));
}

void CpuStage::layer_weight_grad(std::size_t layer, MicrobatchSlice of) {
  float* gradients = parameters_.gradients(layer);
  std::visit(
      [&](const auto& kind) {
        auto& saved = std::get<typename std::decay_t<decltype(kind)>::Saved>(at(of).saved[layer]);
        kind.weight_grad(context_of(of), gradients, saved);
        saved = {};
      },
      layers_[layer]);
}

Tensor CpuStage::backward(MicrobatchSlice of, Tensor output_gradient) {
  rebuild_if_needed(of);
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    output_gradient = layer_input_grad(layer, of, std::move(output_gradient));
    layer_weight_grad(layer, of);
  }
  finish(of);
  return output_gradient;
}

Tensor CpuStage::input_grad(MicrobatchSlice of, Tensor output_gradient) {
  rebuild_if_needed(of);
  for (std::size_t layer = layers_.size(); layer-- > 0;)
    output_gradient = layer_input_grad(layer, of, std::move(output_gradient));
  return output_gradient;
}

void CpuStage::weight_grad(MicrobatchSlice of) {
  for (std::size_t layer = layers_.size(); layer-- > 0;) layer_weight_grad(layer, of);
  finish(of);
}

/// The micro-batch has gone through: its version of the weights may go too.
void CpuStage::finish(MicrobatchSlice of) {
  parameters_.release(version_of(of));
}

void CpuStage::optimizer_step() {
  if (options_.before_update) options_.before_update();
  parameters_.step(contexts_.front().kernels);
}

std::span<float> CpuStage::tied_gradients(ModelEnd end) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    float* block = parameters_.gradients(i);
    const auto table = [&](std::int64_t offset, std::int64_t vocab, std::int64_t hidden) {
      return std::span(block + offset, static_cast<std::size_t>(vocab * hidden));
    };
    const auto* embedding = std::get_if<CpuEmbedding>(&layers_[i]);
    if (end == ModelEnd::kEmbedding && embedding != nullptr)
      return table(embedding->at.tokens, embedding->layer.vocab, embedding->layer.hidden);
    const auto* head = std::get_if<CpuHead>(&layers_[i]);
    if (end == ModelEnd::kHead && head != nullptr && head->layer.tied)
      return table(head->at.projection, head->layer.vocab, head->layer.hidden);
  }
  return {};
}

std::int64_t CpuStage::input_elements(int slice) const {
  if (std::holds_alternative<EmbeddingLayer>(options_.layers.front())) return 0;
  return options_.microbatch * contexts_[static_cast<std::size_t>(slice)].work.sequence *
         hidden_of(options_.layers.front());
}

std::int64_t CpuStage::output_elements(int slice) const {
  return plumb::output_elements(options_.layers.back(), contexts_[static_cast<std::size_t>(slice)].work);
}

}  // namespace plumb
