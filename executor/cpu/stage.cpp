#include "executor/cpu/stage.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "executor/cpu/initial_weights.h"

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
      context_{.kernels = CpuKernelSet(options_.kernel_log),
               .pool = &pool,
               .work = {.microbatch = options_.microbatch, .sequence = options_.sequence},
               .scratch = scratch_.data()},
      microbatches_(options_.weight_versions.size()) {
  std::int64_t parameters = 0;
  for (const Layer& layer : options_.layers) {
    first_element_.push_back(parameters);
    parameters += parameter_count(layer);
    std::ranges::move(layer_parameters(layer), std::back_inserter(parameters_));
    if (const auto* embedding = std::get_if<EmbeddingLayer>(&layer)) layers_.emplace_back(CpuEmbedding(*embedding));
    if (const auto* block = std::get_if<TransformerLayer>(&layer))
      layers_.emplace_back(CpuTransformer(*block, options_.sequence));
    if (const auto* head = std::get_if<HeadLayer>(&layer)) layers_.emplace_back(CpuHead(*head));
  }
  versions_.push_back({0, pool_.take(parameters)});
  for (std::size_t i = 0; i < options_.layers.size(); ++i)
    fill_initial_weights(
        versions_[0].weights.values().subspan(static_cast<std::size_t>(first_element_[i]),
                                              static_cast<std::size_t>(parameter_count(options_.layers[i]))),
        options_.layers[i], options_.first_layer + static_cast<int>(i), options_.seed);
  gradients_ = pool_.take_zeros(parameters);
  first_moments_ = pool_.take_zeros(parameters);
  second_moments_ = pool_.take_zeros(parameters);
  for (Microbatch& microbatch : microbatches_)
    for (const CpuLayer& layer : layers_)
      std::visit(
          [&](const auto& kind) { microbatch.saved.emplace_back(typename std::decay_t<decltype(kind)>::Saved{}); },
          layer);
}

void CpuStage::begin(std::int64_t step) {
  step_ = step;
  versions_.erase(versions_.begin(), versions_.end() - 1);
  versions_.back().number = 0;
  users_.clear();
  for (const int version : options_.weight_versions) {
    if (version < 0) continue;
    users_.resize(std::max(users_.size(), static_cast<std::size_t>(version) + 1));
    ++users_[static_cast<std::size_t>(version)];
  }
  for (Microbatch& microbatch : microbatches_) {  // without a backward, what F kept is still there
    for (SavedLayer& saved : microbatch.saved) std::visit([](auto& kind) { kind = {}; }, saved);
    microbatch.input = {};
    microbatch.loss = 0;
    microbatch.is_rebuilt = false;
  }
}

const float* CpuStage::weights_of(int microbatch) const {
  const int number = options_.weight_versions[static_cast<std::size_t>(microbatch)];
  const auto version = std::ranges::find(versions_, number, &Version::number);
  assert(version != versions_.end());  // weight_versions() refuses schedules in which it is not there
  return version->weights.data();
}

BatchPlace CpuStage::place_of(int microbatch) const {
  return {.seed = options_.seed,
          .step = step_,
          .first_sample = options_.first_sample + microbatch * options_.microbatch,
          .count = options_.microbatch,
          .sequence = options_.sequence};
}

Tensor CpuStage::layer_forward(std::size_t layer, int microbatch, Tensor input) {
  Microbatch& state = at(microbatch);
  const float* weights = weights_of(microbatch) + first_element_[layer];
  const std::int64_t tokens = options_.microbatch * options_.sequence;
  if (const auto* embedding = std::get_if<CpuEmbedding>(&layers_[layer])) {
    EmbeddingSaved& saved = std::get<EmbeddingSaved>(state.saved[layer]);
    saved.tokens = pool_.take(tokens);
    fill_inputs({saved.tokens.tokens(), static_cast<std::size_t>(tokens)}, options_.text, place_of(microbatch));
    return embedding->forward(context_, weights, saved);
  }
  if (const auto* block = std::get_if<CpuTransformer>(&layers_[layer]))
    return block->forward(context_, weights, std::move(input), std::get<TransformerSaved>(state.saved[layer]));
  Tensor targets = pool_.take(tokens);
  fill_targets({targets.tokens(), static_cast<std::size_t>(tokens)}, options_.text, place_of(microbatch));
  state.loss = std::get<CpuHead>(layers_[layer])
                   .forward(context_, weights, std::move(input), targets,
                            options_.gradient_scales[static_cast<std::size_t>(microbatch)],
                            std::get<HeadSaved>(state.saved[layer]));
  return {};
}

Tensor CpuStage::run_forward(int microbatch, Tensor input, bool keep) {
  Microbatch& state = at(microbatch);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    input = layer_forward(layer, microbatch, std::move(input));
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

Tensor CpuStage::forward(int microbatch, Tensor input) {
  return run_forward(microbatch, std::move(input), options_.rebuild == Rebuild::kNothing);
}

void CpuStage::recompute(int microbatch) {
  Microbatch& state = at(microbatch);
  const double loss = state.loss;
  run_forward(microbatch, std::move(state.input), true);
  state.loss = loss;
  state.is_rebuilt = true;
}

void CpuStage::rebuild_if_needed(int microbatch) {
  if (options_.rebuild == Rebuild::kStage && !at(microbatch).is_rebuilt) recompute(microbatch);
}

Tensor CpuStage::layer_input_grad(std::size_t layer, int microbatch, Tensor output_gradient) {
  SavedLayer& saved = at(microbatch).saved[layer];
  const float* weights = weights_of(microbatch) + first_element_[layer];
  float* gradients = gradients_.data() + first_element_[layer];
  if (std::holds_alternative<CpuEmbedding>(layers_[layer])) {
    std::get<EmbeddingSaved>(saved).output_gradient = std::move(output_gradient);
    return {};
  }
  if (const auto* block = std::get_if<CpuTransformer>(&layers_[layer]))
    return block->input_grad(context_, weights, gradients, std::move(output_gradient),
                             std::get<TransformerSaved>(saved));
  return std::get<CpuHead>(layers_[layer]).input_grad(context_, weights, gradients, std::get<HeadSaved>(saved));
}

void CpuStage::layer_weight_grad(std::size_t layer, int microbatch) {
  float* gradients = gradients_.data() + first_element_[layer];
  std::visit(
      [&](const auto& kind) {
        auto& saved = std::get<typename std::decay_t<decltype(kind)>::Saved>(at(microbatch).saved[layer]);
        kind.weight_grad(context_, gradients, saved);
        saved = {};
      },
      layers_[layer]);
}

Tensor CpuStage::backward(int microbatch, Tensor output_gradient) {
  rebuild_if_needed(microbatch);
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    output_gradient = layer_input_grad(layer, microbatch, std::move(output_gradient));
    layer_weight_grad(layer, microbatch);
  }
  finish(microbatch);
  return output_gradient;
}

Tensor CpuStage::input_grad(int microbatch, Tensor output_gradient) {
  rebuild_if_needed(microbatch);
  for (std::size_t layer = layers_.size(); layer-- > 0;)
    output_gradient = layer_input_grad(layer, microbatch, std::move(output_gradient));
  return output_gradient;
}

void CpuStage::weight_grad(int microbatch) {
  for (std::size_t layer = layers_.size(); layer-- > 0;) layer_weight_grad(layer, microbatch);
  finish(microbatch);
}

/// The micro-batch has gone through: its version of the weights may go too.
void CpuStage::finish(int microbatch) {
  const int number = options_.weight_versions[static_cast<std::size_t>(microbatch)];
  if (--users_[static_cast<std::size_t>(number)] > 0 || number == versions_.back().number) return;
  std::erase_if(versions_, [&](const Version& version) { return version.number == number; });
}

void CpuStage::optimizer_step() {
  if (options_.before_update) options_.before_update();
  const auto newest = static_cast<std::size_t>(versions_.back().number);
  if (newest < users_.size() && users_[newest] > 0)
    versions_.push_back({static_cast<int>(newest), pool_.take_copy(versions_.back().weights)});
  versions_.back().number += 1;
  ++updates_;
  std::int64_t element = 0;
  for (const ParameterTensor& tensor : parameters_) {
    AdamW optimizer = options_.optimizer;
    if (tensor.shape.size() == 1) optimizer.weight_decay = 0;
    const std::int64_t count = element_count(tensor);
    context_.kernels.adamw_update(versions_.back().weights.data() + element, gradients_.data() + element,
                                  first_moments_.data() + element, second_moments_.data() + element, count, optimizer,
                                  updates_);
    element += count;
  }
}

std::span<float> CpuStage::tied_gradients(ModelEnd end) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    float* block = gradients_.data() + first_element_[i];
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

std::int64_t CpuStage::input_elements() const {
  if (std::holds_alternative<EmbeddingLayer>(options_.layers.front())) return 0;
  return options_.microbatch * options_.sequence * hidden_of(options_.layers.front());
}

std::int64_t CpuStage::output_elements() const {
  return plumb::output_elements(options_.layers.back(), context_.work);
}

CpuStage::LayerValues CpuStage::split_by_parameter(const Tensor& block) const {
  LayerValues values;
  std::int64_t element = 0;
  for (const Layer& layer : options_.layers) {
    values.emplace_back();
    for (const ParameterTensor& tensor : layer_parameters(layer)) {
      const float* first = block.data() + element;
      values.back().emplace_back(first, first + element_count(tensor));
      element += element_count(tensor);
    }
  }
  return values;
}

CpuStage::LayerValues CpuStage::gradient_values() const {
  return split_by_parameter(gradients_);
}
CpuStage::LayerValues CpuStage::weight_values() const {
  return split_by_parameter(versions_.back().weights);
}

}  // namespace plumb
