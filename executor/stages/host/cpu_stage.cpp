#include "executor/stages/host/cpu_stage.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "executor/layers/host/half_tensors.h"
#include "executor/stages/host/stage_parts.h"
#include "executor/transport/transport.h"
#include "kernels/cpu/half.h"

namespace plumb { inline namespace executor {
namespace {

GradientMeasure operator+(const GradientMeasure& a, const GradientMeasure& b) {
  return {.square_sum = a.square_sum + b.square_sum, .overflows = a.overflows || b.overflows};
}

}  // namespace

CpuStage::CpuStage(CpuStageOptions options, TensorPool& pool)
    : options_(std::move(options)),
      group_starts_(group_starts(options_)),
      pool_(pool),
      layers_(make_layers(options_)),
      scratch_(scratch_elements(layers_)),
      contexts_(slice_contexts(options_, pool, scratch_.data())),
      parameters_(parameter_options(options_, ParameterPart::kCommon), pool),
      experts_(make_expert_parameters(options_, pool)),
      states_(options_.weight_versions.size() * contexts_.size()) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    states_[i].inputs.resize(group_starts_.size());
    const auto slice = static_cast<int>(i % contexts_.size());
    for (const auto& layer : layers_) states_[i].saved.push_back(layer->make_saved(slice));
  }
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
  if (experts_ != nullptr) experts_->begin(uses);
  parameters_.begin(std::move(uses));
  for (State& state : states_) {  // without a backward, the tensors that F kept are still there
    for (const auto& saved : state.saved) {
      drop_tensors(*saved);
      saved->loss = saved->balance_loss = 0;
    }
    for (Tensor& input : state.inputs) input = {};
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
    sum += states_[index_of({microbatch, static_cast<int>(slice)})].saved.back()->loss;
  return sum;
}

double CpuStage::balance_loss(int microbatch) const {
  double sum = 0;
  for (std::size_t slice = 0; slice < contexts_.size(); ++slice)
    for (const auto& saved : states_[index_of({microbatch, static_cast<int>(slice)})].saved) sum += saved->balance_loss;
  return sum;
}

ParameterBytes CpuStage::held_bytes() const {
  return experts_ == nullptr ? parameters_.held_bytes() : parameters_.held_bytes() + experts_->held_bytes();
}

std::vector<Tensor*> CpuStage::activations_of(MicrobatchSlice of) {
  std::vector<Tensor*> tensors;
  for (Tensor& input : at(of).inputs) tensors.push_back(&input);
  for (const auto& saved : at(of).saved) std::ranges::copy(saved->tensors(), std::back_inserter(tensors));
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
  const ContextTokens tokens = tokens_of_slice(options_, of.slice);
  const std::int64_t stride = options_.sample_stride > 0 ? options_.sample_stride : options_.microbatch;
  return {.seed = options_.seed,
          .step = step_,
          .first_sample = options_.first_sample + of.microbatch * stride,
          .count = options_.microbatch,
          .sequence = options_.sequence,
          .slice = tokens.first,
          .second_slice = tokens.second};
}

/// Returns a layer's weights. `next` is the layer that is used after it, where there is one.
CpuStage::StageWeights CpuStage::weights_of(std::size_t layer, MicrobatchSlice of, std::optional<std::size_t> next) {
  StageWeights weights{.common = parameters_.weights(version_of(of), layer, next)};
  if (experts_ != nullptr) weights.experts = experts_->weights(version_of(of), layer, next);
  return weights;
}

LayerCall CpuStage::backward_call_of(std::size_t layer, MicrobatchSlice of, const StageWeights& weights) {
  LayerCall call = call_of(layer, of, weights);
  call.gradients = parameters_.gradients(layer);
  if (experts_ != nullptr) call.expert_gradients = experts_->gradients(layer);
  return call;
}

LayerCall CpuStage::call_of(std::size_t layer, MicrobatchSlice of, const StageWeights& weights) {
  return {.context = context_of(of),
          .place = place_of(of),
          .weights = weights.common.data,
          .expert_weights = weights.experts.data,
          .gradient_scale = loss_scale_ * options_.gradient_scales[static_cast<std::size_t>(of.microbatch)],
          .layer_number = options_.first_layer + static_cast<int>(layer),
          .sequence = sequence_of(layer, of)};
}

std::size_t CpuStage::group_end(std::size_t group) const {
  return group + 1 < group_starts_.size() ? group_starts_[group + 1] : layers_.size();
}

/// Widens to fp32 a tensor from a message, or a tensor that has waited.
Tensor CpuStage::opened(Tensor message, std::int64_t elements) const {
  if (!options_.half || message.empty()) return message;
  return widened(pool_, message, elements, *options_.half);
}

/// Stores in 16 bits a tensor that leaves the stage or waits; it then fills whole words.
Tensor CpuStage::sealed(Tensor tensor) const {
  if (!options_.half || tensor.empty()) return tensor;
  Tensor words = pool_.take(message_words(tensor.elements()));
  words.words()[words.elements() - 1] = 0;  // half of the last word may be unused
  narrow(words.halves(), tensor.data(), tensor.elements(), *options_.half);
  return words;
}

std::int64_t CpuStage::message_words(std::int64_t elements) const {
  return options_.half ? (elements + 1) / 2 : elements;
}

/// Rounds a tensor between two layers to its value if the layers were on different stages.
Tensor CpuStage::rounded(Tensor tensor) const {
  if (options_.half) round_to_half(tensor, *options_.half);
  return tensor;
}

void CpuStage::narrow_kept(LayerSaved& saved) const {
  if (options_.half) narrow_saved(saved, pool_, *options_.half);
}

void CpuStage::widen_kept(LayerSaved& saved) const {
  if (options_.half) widen_saved(saved, pool_, *options_.half);
}

/// Runs the forward of a group of layers. Without `keep` only the group's input stays.
Tensor CpuStage::run_forward(MicrobatchSlice of, Tensor input, std::size_t group, bool keep) {
  State& state = at(of);
  for (std::size_t layer = group_starts_[group]; layer < group_end(group); ++layer) {
    const bool is_first = layer == group_starts_[group];
    LayerSaved& saved = *state.saved[layer];
    const bool has_next = layer + 1 < layers_.size() && !rebuilds(of);
    const StageWeights weights = weights_of(layer, of, has_next ? std::optional(layer + 1) : std::nullopt);
    LayerCall call = call_of(layer, of, weights);
    call.keep_input = !keep && is_first;
    input = rounded(layers_[layer]->forward(call, std::move(input), saved));
    if (keep) {
      narrow_kept(saved);
      continue;
    }
    if (is_first && saved.kept_input() != nullptr) state.inputs[group] = sealed(std::move(*saved.kept_input()));
    drop_tensors(saved);
  }
  return input;
}

bool CpuStage::rebuilds(MicrobatchSlice of) const {
  if (options_.rebuild == Recompute::kNone) return false;
  return options_.rebuilds.empty() || options_.rebuilds[static_cast<std::size_t>(of.microbatch)];
}

Tensor CpuStage::forward(MicrobatchSlice of, Tensor input) {
  const bool selective = options_.rebuild == Recompute::kSelective;
  const bool keep = selective || !rebuilds(of);
  input = opened(std::move(input), whole_input_elements(of.slice));
  for (std::size_t group = 0; group < group_starts_.size(); ++group)
    input = run_forward(of, std::move(input), group, keep);
  if (selective && rebuilds(of))
    for (const auto& saved : at(of).saved)
      for (Tensor* tensor : saved->cheap()) *tensor = {};
  if (const double loss = at(of).saved.back()->loss; !std::isfinite(loss))
    throw RunError(
        fmt::format("the loss of micro-batch {} is {}: the run has diverged; go on from a checkpoint with a smaller "
                    "learning rate, clipped gradients or a higher precision",
                    of.microbatch, loss));
  return sealed(std::move(input));
}

void CpuStage::rebuild_group(MicrobatchSlice of, std::size_t group) {
  if (options_.rebuild != Recompute::kSelective) {
    const LayerWork& work = context_of(of).work;
    const std::int64_t elements = plumb::input_elements(options_.layers[group_starts_[group]], work);
    run_forward(of, opened(std::move(at(of).inputs[group]), elements), group, true);
    return;
  }
  for (std::size_t layer = group_starts_[group]; layer < group_end(group); ++layer) {
    const StageWeights weights = weights_of(layer, of);
    LayerSaved& saved = *at(of).saved[layer];
    widen_kept(saved);
    layers_[layer]->rebuild_cheap(call_of(layer, of, weights), saved);
    narrow_kept(saved);
  }
}

void CpuStage::recompute(MicrobatchSlice of) {
  for (std::size_t group = 0; group < group_starts_.size(); ++group) rebuild_group(of, group);
  at(of).is_rebuilt = true;
}

/// Rebuilds a group before the backward enters `layer`, if that layer is the group's last.
void CpuStage::rebuild_before(std::size_t layer, MicrobatchSlice of) {
  if (!rebuilds(of) || at(of).is_rebuilt) return;
  for (std::size_t group = 0; group < group_starts_.size(); ++group)
    if (group_end(group) == layer + 1) rebuild_group(of, group);
}

/// Returns the weights of a layer whose backward comes now; the layer before it is used next.
CpuStage::StageWeights CpuStage::backward_weights(std::size_t layer, MicrobatchSlice of) {
  const bool has_next = layer > 0 && !rebuilds(of);
  return weights_of(layer, of, has_next ? std::optional(layer - 1) : std::nullopt);
}

Tensor CpuStage::layer_input_grad(std::size_t layer, MicrobatchSlice of, const StageWeights& weights,
                                  Tensor output_gradient) {
  LayerSaved& saved = *at(of).saved[layer];
  widen_kept(saved);
  const LayerCall call = backward_call_of(layer, of, weights);
  return rounded(layers_[layer]->input_grad(call, std::move(output_gradient), saved));
}

void CpuStage::layer_weight_grad(std::size_t layer, MicrobatchSlice of, const StageWeights& weights) {
  LayerSaved& saved = *at(of).saved[layer];
  widen_kept(saved);
  layers_[layer]->weight_grad(backward_call_of(layer, of, weights), saved);
  drop_tensors(saved);
  parameters_.complete(layer);
  if (experts_ != nullptr) experts_->complete(layer);
}

Tensor CpuStage::backward(MicrobatchSlice of, Tensor output_gradient) {
  output_gradient = opened(std::move(output_gradient), whole_output_elements(of.slice));
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    rebuild_before(layer, of);
    {
      const StageWeights weights = backward_weights(layer, of);
      output_gradient = layer_input_grad(layer, of, weights, std::move(output_gradient));
      layer_weight_grad(layer, of, weights);
    }
    complete_layer(layer);
  }
  finish(of);
  return sealed(std::move(output_gradient));
}

Tensor CpuStage::input_grad(MicrobatchSlice of, Tensor output_gradient) {
  output_gradient = opened(std::move(output_gradient), whole_output_elements(of.slice));
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    rebuild_before(layer, of);
    output_gradient = layer_input_grad(layer, of, backward_weights(layer, of), std::move(output_gradient));
    narrow_kept(*at(of).saved[layer]);
  }
  return sealed(std::move(output_gradient));
}

void CpuStage::weight_grad(MicrobatchSlice of) {
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    layer_weight_grad(layer, of, backward_weights(layer, of));
    complete_layer(layer);
  }
  finish(of);
}

/// Releases the micro-batch's version of the weights, since its backward is done.
void CpuStage::finish(MicrobatchSlice of) {
  parameters_.release(version_of(of));
  if (experts_ != nullptr) experts_->release(version_of(of));
}

/// Calls the bucket hook, if there is one, for the bucket that ends with this layer.
void CpuStage::complete_layer(std::size_t layer) {
  if (!bucket_hook_) return;
  std::size_t first = layers_.size();
  for (std::size_t bucket = 0; bucket < options_.bucket_layers.size(); ++bucket) {
    first -= static_cast<std::size_t>(options_.bucket_layers[bucket]);
    if (first == layer) bucket_hook_(static_cast<int>(bucket));
  }
  if (layer == 0) {
    if (options_.bucket_layers.empty()) bucket_hook_(0);
    bucket_hook_ = {};
  }
}

/// Counts a table that both ends hold at the embedding.
GradientMeasure CpuStage::gradient_measure() const {
  const GradientMeasure common = parameters_.measure(tied_table(ModelEnd::kHead));
  return experts_ == nullptr ? common : common + experts_->measure({});
}

void CpuStage::optimizer_step(const StepScale& scale) {
  const std::array<CpuParameters*, 2> blocks = {&parameters_, experts_.get()};
  for (CpuParameters* block : blocks)
    if (block != nullptr && !scale.skip) block->scale_gradients(scale.factor);
  if (options_.before_update) options_.before_update();
  for (CpuParameters* block : blocks)
    if (block != nullptr) block->step(contexts_.front().kernels, scale.skip);
}

std::vector<Collective> CpuStage::start_reduction(int bucket) {
  return parameters_.start_reduction(static_cast<std::size_t>(bucket));
}

std::vector<Collective> CpuStage::start_expert_reduction(int bucket) {
  if (experts_ == nullptr) return {};
  return experts_->start_reduction(static_cast<std::size_t>(bucket));
}

void CpuStage::finish_reduction() {
  parameters_.finish_reduction();
  if (experts_ != nullptr) experts_->finish_reduction();
}

std::vector<Collective> CpuStage::start_sum_of_shares() {
  std::vector<Collective> sums = {parameters_.sum_of_shares()};
  if (experts_ != nullptr) sums.push_back(experts_->sum_of_shares());
  return sums;
}

std::vector<Collective> CpuStage::start_expert_gather() {
  return experts_ == nullptr ? std::vector<Collective>{} : experts_->start_gather();
}

void CpuStage::drop_gathered() {
  parameters_.drop_gathered();
  if (experts_ != nullptr) experts_->drop_gathered();
}

/// Returns the table's range in the stage's block of parameters; count 0 if the stage does not have that end.
ElementRange CpuStage::tied_table(ModelEnd end) const {
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const ElementRange table = layers_[layer]->tied_table(end);
    if (table.count > 0) return {parameters_.places().first_element[layer] + table.first, table.count};
  }
  return {};
}

std::int64_t CpuStage::input_elements(int slice) const {
  return message_words(whole_input_elements(slice));
}

std::int64_t CpuStage::output_elements(int slice) const {
  return message_words(whole_output_elements(slice));
}

std::int64_t CpuStage::whole_input_elements(int slice) const {
  return plumb::input_elements(options_.layers.front(), contexts_[static_cast<std::size_t>(slice)].work);
}

std::int64_t CpuStage::whole_output_elements(int slice) const {
  return plumb::output_elements(options_.layers.back(), contexts_[static_cast<std::size_t>(slice)].work);
}

}}  // namespace plumb::executor
