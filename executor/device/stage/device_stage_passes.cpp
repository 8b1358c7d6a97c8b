// A stage's passes over a micro-batch, and where its layers' tensors lie meanwhile.

#include <algorithm>

#include "executor/device/stage/device_stage.h"

namespace plumb {

DeviceTensorShare DeviceStage::share_of(std::size_t layer) const {
  const auto* head = std::get_if<HeadLayer>(&model_layers_[layer]);
  return {.ranks = options_.tensor.ranks,
          .rank = options_.tensor.rank,
          .whole_vocabulary = head == nullptr ? 0 : head->vocab,
          .kv_sharers = kv_sharers(model_layers_[layer], options_.tensor.ranks),
          .context = options_.context};
}

void DeviceStage::place_layers() {
  std::vector<DeviceLayerBytes> bytes;
  for (std::size_t i = 0; i < options_.layers.size(); ++i) {
    const Layer& layer = options_.layers[i];
    layers_.push_back({.layer = make_device_layer(layer, options_.work, element_bytes_, share_of(i)),
                       .constants = static_cast<std::int64_t>(constants_.size()),
                       .expert_layers = expert_layers_});
    if (const auto* block = std::get_if<TransformerLayer>(&layer); block != nullptr && block->experts > 0)
      ++expert_layers_;
    bytes.push_back(layers_.back().bytes = layers_.back().layer->bytes());
    const std::vector<float> constants = layers_.back().layer->constants();
    constants_.insert(constants_.end(), constants.begin(), constants.end());
  }
  layout_ = stage_layout(options_.layers, bytes, options_.work, element_bytes_, options_.rebuild);
  kept_layout_ = stage_layout(options_.layers, bytes, options_.work, element_bytes_, {});
}

const StageLayout& DeviceStage::layout_of(int microbatch) const {
  const std::vector<bool>& kept = options_.kept_microbatches;
  return !kept.empty() && kept[static_cast<std::size_t>(microbatch)] ? kept_layout_ : layout_;
}

StageMemory DeviceStage::memory() const {
  const std::int64_t own = shares_.own().count, single = sizeof(float);
  StageMemory memory = layout_.microbatch_memory();
  memory.parameter_bytes = (shares_.zero() < 3 ? elements() : own) * element_bytes_;
  memory.gradient_bytes = (shares_.zero() < 2 ? elements() : own) * single;
  memory.optimizer_bytes = optimizer_places_.is_on_host() ? 0 : optimizer_bytes();
  if (shares_.zero() == 3 && !shares_.gathers_layers()) memory.unsharded_bytes = version_bytes();
  memory.forward_workspace_bytes += moved_bytes(false);
  memory.backward_workspace_bytes += moved_bytes(true);
  return memory;
}

std::vector<StageMemory> DeviceStage::microbatch_memory() const {
  std::vector<StageMemory> memory;
  for (std::size_t i = 0; i < options_.kept_microbatches.size(); ++i) {
    memory.push_back(layout_of(static_cast<int>(i)).microbatch_memory());
    memory.back().forward_workspace_bytes += moved_bytes(false);
    memory.back().backward_workspace_bytes += moved_bytes(true);
  }
  return memory;
}

/// From F, or R, on.
DeviceStage::LayerMemory DeviceStage::memory_of(const DevicePass& pass, std::size_t layer) const {
  const StageLayout& layout = layout_of(pass.microbatch);
  const StageLayout::LayerPlace& placed = layout.layers[layer];
  const auto at_bases = [&](std::byte* early, std::byte* late, std::byte* cheap) {
    return LayerMemory{.early = early + placed.early, .late = late + placed.late, .cheap = cheap + placed.cheap};
  };
  if (layout.rebuild.keeps_inputs()) return at_bases(pass.rebuilt_early, pass.rebuilt_late, pass.rebuilt_late);
  if (layout.rebuild.what == Rebuild::kSelective)  // all that is kept goes at once
    return at_bases(pass.late + layout.bytes.late, pass.late, pass.rebuilt_late);
  return at_bases(pass.early, pass.late, pass.late);
}

/// While F runs: what is not kept lies in the workspace, where inputs are all that is kept by turns in one of two
/// places as a layer writes its output into the next one's.
DeviceStage::LayerMemory DeviceStage::forward_memory(const DevicePass& pass, std::size_t layer) const {
  const DeviceLayerBytes& own = layers_[layer].bytes;
  const StageLayout& layout = layout_of(pass.microbatch);
  std::byte* const spare = pass.workspace + layout.bytes.forward_workspace;
  if (layout.rebuild.keeps_inputs()) {
    std::byte* const here = spare + static_cast<std::int64_t>(layer % 2) * layout.forgotten_bytes;
    return {.early = here, .late = here + own.early, .cheap = here + own.early + own.late};
  }
  LayerMemory memory = memory_of(pass, layer);
  if (layout.rebuild.what == Rebuild::kSelective) memory.cheap = spare;
  return memory;
}

DeviceLayerCall DeviceStage::call_of(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer,
                                     const LayerMemory& memory) const {
  const std::int64_t first = places_.first_element[layer];
  const std::int64_t token = pass.microbatch * tokens_;
  const bool is_elsewhere = pass.weights != nullptr;  // replaced, or gathered
  const bool is_packed = has_vector_block() || (options_.half && is_elsewhere);
  const std::byte* weights = is_elsewhere ? pass.weights : stored_weights_;
  const float* vectors = is_packed ? vector_block_ : master_;
  if (is_elsewhere)
    vectors = reinterpret_cast<const float*>(is_packed ? weights + aligned_bytes(stored_bytes()) : weights);
  weights += first * element_bytes_;
  if (!is_packed) vectors += first;
  if (shares_.gathers_layers()) {
    weights = gathered_layer(pass, layer).weights;
    vectors = gathered_layer(pass, layer).vectors;
  }
  return {
      .kernels = kernels,
      .early = memory.early,
      .late = memory.late,
      .cheap = memory.cheap,
      .workspace = pass.workspace + 2 * layout_.bytes.passing,
      .passing = pass.workspace + static_cast<std::int64_t>(layer % 2) * layout_.bytes.passing,
      .weights = weights,
      .vectors = vectors,
      .packed = is_packed ? &vectors_ : nullptr,
      .first_element = first,
      .first_packed = is_packed && shares_.gathers_layers() ? vectors_.count_before(first) : 0,
      .gradients = layer_gradients(pass, layer),
      .constants = device_constants_ == nullptr ? nullptr : device_constants_ + layers_[layer].constants,
      .tokens = token_numbers_ == nullptr ? nullptr : token_numbers_ + token,
      .targets = target_numbers_ == nullptr ? nullptr : target_numbers_ + token,
      .samples = samples_ == nullptr ? nullptr : samples_ + pass.microbatch * sample_bytes(),
      .sample_targets =
          sample_targets_ == nullptr ? nullptr : sample_targets_ + pass.microbatch * sample_target_elements(),
      .losses = losses_ == nullptr ? nullptr : losses_ + token,
      .balance_losses = balance_losses_ == nullptr
                            ? nullptr
                            : balance_losses_ + token + layers_[layer].expert_layers * options_.microbatches * tokens_,
      .gradient_scale = options_.gradient_scales[static_cast<std::size_t>(pass.microbatch)],
      .loss_scale = options_.agrees ? &numbers_->loss_scale : nullptr,
      .tensor = {.recorder = pass.recorder,
                 .seat = options_.tensor_group,
                 .divides_rows = options_.work.sequence_parallel},
      .context = {.recorder = pass.recorder,
                  .seat = options_.context_group,
                  .tokens = context_tokens({0, options_.work.sequence * options_.context.ranks}, options_.context)},
      .seed = options_.seed,
      .layer_number = options_.first_layer + static_cast<int>(layer),
      .first_sample = options_.first_sample + pass.microbatch * options_.sample_stride,
      .numbers = numbers_,
      .rebuilds_cheap = layout_of(pass.microbatch).rebuild.what == Rebuild::kSelective};
}

/// `input` is copied to where the first layer takes it; the last one writes `output`.
template <class MemoryOf>
void DeviceStage::run_group(DeviceKernels& kernels, const DevicePass& pass, const StageLayout::Group& group,
                            const std::byte* input, std::byte* output, MemoryOf memory_of) const {
  const auto call = [&](std::size_t layer) { return call_of(kernels, pass, layer, memory_of(layer)); };
  const auto input_at = [&](std::size_t layer) { return address_of(call(layer), layers_[layer].layer->input()); };
  if (std::byte* const first = input_at(group.first); first != nullptr && input != first)
    kernels.copy(first, input, input_elements(options_.layers[group.first], options_.work) * element_bytes_);
  for (std::size_t i = group.first; i < group.end; ++i) {
    fetch_forward(pass, i);
    layers_[i].layer->forward(call(i), i + 1 < group.end ? input_at(i + 1) : output);
  }
}

void DeviceStage::forward(DeviceKernels& kernels, const DevicePass& pass) const {
  const auto memory = [&](std::size_t layer) { return forward_memory(pass, layer); };
  const StageLayout& layout = layout_of(pass.microbatch);
  if (!layout.rebuild.keeps_inputs()) {
    const StageLayout::Group whole{.first = 0, .end = layers_.size()};
    return run_group(kernels, pass, whole, pass.incoming, pass.outgoing, memory);
  }
  if (pass.incoming != nullptr) kernels.copy(pass.late, pass.incoming, input_bytes());
  const std::vector<StageLayout::Group>& groups = layout.groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::byte* const output = i + 1 < groups.size() ? pass.late + groups[i + 1].kept : pass.outgoing;
    run_group(kernels, pass, groups[i], pass.late + groups[i].kept, output, memory);
  }
}

void DeviceStage::rebuild_group(DeviceKernels& kernels, const DevicePass& pass, const StageLayout::Group& group) const {
  const auto memory = [&](std::size_t layer) { return memory_of(pass, layer); };
  const StageLayout& layout = layout_of(pass.microbatch);
  if (!layout.rebuild.keeps_inputs()) {
    for (std::size_t i = group.first; i < group.end; ++i) {
      fetch(pass, i, std::nullopt);
      layers_[i].layer->rebuild_cheap(call_of(kernels, pass, i, memory(i)));
    }
    return;
  }
  const bool has_output = output_elements(options_.layers[group.end - 1], options_.work) > 0;
  run_group(kernels, pass, group, pass.late + group.kept,
            has_output ? pass.workspace + layout.bytes.forward_workspace : nullptr, memory);
}

void DeviceStage::recompute(DeviceKernels& kernels, const DevicePass& pass) const {
  for (const StageLayout::Group& group : layout_of(pass.microbatch).groups) rebuild_group(kernels, pass, group);
}

/// What comes from the next stage, to where the last layer takes it.
void DeviceStage::take_output_gradient(DeviceKernels& kernels, const DevicePass& pass) const {
  if (pass.incoming == nullptr) return;
  const std::size_t last = layers_.size() - 1;
  const DeviceLayerCall call = call_of(kernels, pass, last, memory_of(pass, last));
  kernels.copy(address_of(call, layers_[last].layer->output_gradient()), pass.incoming, output_bytes());
}

void DeviceStage::input_grad(DeviceKernels& kernels, const DevicePass& pass) const {
  take_output_gradient(kernels, pass);
  const auto call = [&](std::size_t layer) { return call_of(kernels, pass, layer, memory_of(pass, layer)); };
  for (std::size_t i = layers_.size(); i-- > 0;) {
    std::byte* gradient = pass.outgoing;
    if (i > 0) gradient = address_of(call(i - 1), layers_[i - 1].layer->output_gradient());
    fetch_backward(pass, i);
    open_layer(kernels, pass, i);
    layers_[i].layer->input_grad(call(i), gradient);
    leave_vectors(kernels, pass, i);
  }
}

void DeviceStage::weight_grad(DeviceKernels& kernels, const DevicePass& pass, CallRecorder* buckets) const {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    fetch_backward(pass, i);
    open_layer(kernels, pass, i);
    layers_[i].layer->weight_grad(call_of(kernels, pass, i, memory_of(pass, i)));
    take_vectors(kernels, pass, i);
    reduce_layer(pass, i);
    complete_layer(buckets, i);
  }
}

void DeviceStage::layer_backward(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer, std::byte* gradient,
                                 CallRecorder* buckets) const {
  fetch_backward(pass, layer);
  open_layer(kernels, pass, layer);
  const DeviceLayerCall call = call_of(kernels, pass, layer, memory_of(pass, layer));
  layers_[layer].layer->input_grad(call, gradient);
  layers_[layer].layer->weight_grad(call);
  reduce_layer(pass, layer);
  complete_layer(buckets, layer);
}

void DeviceStage::backward(DeviceKernels& kernels, const DevicePass& pass, bool recomputes,
                           CallRecorder* buckets) const {
  const StageLayout& layout = layout_of(pass.microbatch);
  if (!recomputes || layout.rebuild.at_once) {
    if (recomputes) recompute(kernels, pass);
    take_output_gradient(kernels, pass);
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const auto call = [&](std::size_t layer) { return call_of(kernels, pass, layer, memory_of(pass, layer)); };
      std::byte* gradient = pass.outgoing;
      if (i > 0) gradient = address_of(call(i - 1), layers_[i - 1].layer->output_gradient());
      layer_backward(kernels, pass, i, gradient, buckets);
    }
    return;
  }
  // All groups have one place, in which the one before is computed again over the gradient that it waits for.
  const bool share_a_place = layout.rebuild.keeps_inputs();
  std::byte* const between = pass.workspace + std::max(layout.rebuild_workspace(), layout.bytes.backward_workspace);
  const auto call = [&](std::size_t layer) { return call_of(kernels, pass, layer, memory_of(pass, layer)); };
  const auto output_gradient = [&](std::size_t layer) {
    return address_of(call(layer), layers_[layer].layer->output_gradient());
  };
  for (std::size_t g = layout.groups.size(); g-- > 0;) {
    const StageLayout::Group& group = layout.groups[g];
    rebuild_group(kernels, pass, group);
    if (g + 1 == layout.groups.size())
      take_output_gradient(kernels, pass);
    else if (share_a_place && output_gradient(group.end - 1) != nullptr)
      kernels.copy(output_gradient(group.end - 1), between,
                   output_elements(options_.layers[group.end - 1], options_.work) * element_bytes_);
    for (std::size_t i = group.end; i-- > group.first;) {
      std::byte* gradient = pass.outgoing;
      if (i > group.first || (i > 0 && !share_a_place))
        gradient = output_gradient(i - 1);
      else if (i > 0)
        gradient = between;
      layer_backward(kernels, pass, i, gradient, buckets);
    }
  }
}

}  // namespace plumb
