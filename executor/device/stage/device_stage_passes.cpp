// A stage's passes over a micro-batch, and where its layers' tensors lie meanwhile.

#include <algorithm>

#include "executor/device/stage/device_stage.h"

namespace plumb { inline namespace executor {

DeviceTensorShare DeviceStage::share_of(std::size_t layer, const Slice& slice) const {
  const auto* head = std::get_if<HeadLayer>(&model_layers_[layer]);
  return {.ranks = options_.tensor.ranks,
          .rank = options_.tensor.rank,
          .whole_vocabulary = head == nullptr ? 0 : head->vocab,
          .kv_sharers = kv_sharers(model_layers_[layer], options_.tensor.ranks),
          .context = options_.context,
          .experts = options_.experts,
          .sequence = options_.work.sequence * options_.context.ranks,
          .slice = slice.shared,
          .slices = options_.slices,
          .slice_number = slice.number};
}

void DeviceStage::place_layers() {
  const std::int64_t whole = options_.work.sequence * options_.context.ranks;
  for (int i = 0; i < options_.slices; ++i) {
    Slice slice{.number = i, .shared = slice_tokens(whole, options_.slices, i), .work = options_.work};
    slice.tokens = context_tokens(slice.shared, options_.context);
    slice.work.sequence = slice.tokens.count();
    slice.first_row = options_.work.microbatch * slice.shared.first / options_.context.ranks;
    place_slice(slice);
    slices_.push_back(std::move(slice));
    if (slices_.back().shared.count > slices_[static_cast<std::size_t>(largest_slice_)].shared.count)
      largest_slice_ = i;
  }
}

void DeviceStage::place_slice(Slice& slice) {
  std::vector<DeviceLayerBytes> bytes;
  DeviceLayerBytes of_sequences;
  expert_layers_ = 0;
  for (std::size_t i = 0; i < options_.layers.size(); ++i) {
    const Layer& layer = options_.layers[i];
    slice.layers.push_back({.layer = make_device_layer(layer, slice.work, element_bytes_, share_of(i, slice)),
                            .constants = static_cast<std::int64_t>(constants_.size()),
                            .expert_layers = expert_layers_,
                            .before = of_sequences});
    if (const auto* block = std::get_if<TransformerLayer>(&layer); block != nullptr && block->experts > 0)
      ++expert_layers_;
    bytes.push_back(slice.layers.back().bytes = slice.layers.back().layer->bytes());
    of_sequences.sequences += bytes.back().sequences;
    of_sequences.sequence_gradients += bytes.back().sequence_gradients;
    const std::vector<float> constants = slice.layers.back().layer->constants();
    constants_.insert(constants_.end(), constants.begin(), constants.end());
  }
  sequence_bytes_ = of_sequences;  // of whole sequences: the same of every slice
  slice.layout = stage_layout(options_.layers, bytes, slice.work, element_bytes_, options_.rebuild);
  slice.kept_layout = stage_layout(options_.layers, bytes, slice.work, element_bytes_, {});
}

const StageLayout& DeviceStage::layout_of(const Slice& slice, int microbatch) const {
  const std::vector<bool>& kept = options_.kept_microbatches;
  const bool is_kept = !kept.empty() && microbatch != kRebuilt && kept[static_cast<std::size_t>(microbatch)];
  return is_kept ? slice.kept_layout : slice.layout;
}

/// All slices have the places of the largest one; later ones may need more workspace, for what goes round.
StageMemory DeviceStage::slice_memory(int microbatch) const {
  StageMemory memory = layout_of(slices_[static_cast<std::size_t>(largest_slice_)], microbatch).microbatch_memory();
  for (const Slice& slice : slices_) {
    const StageMemory own = layout_of(slice, microbatch).microbatch_memory();
    memory.forward_workspace_bytes = std::max(memory.forward_workspace_bytes, own.forward_workspace_bytes);
    memory.backward_workspace_bytes = std::max(memory.backward_workspace_bytes, own.backward_workspace_bytes);
  }
  memory.forward_workspace_bytes += moved_bytes(false);
  memory.backward_workspace_bytes += moved_bytes(true);
  return memory;
}

StageMemory DeviceStage::memory() const {
  StageMemory memory = slice_memory(kRebuilt);
  memory.parameter_bytes = sum_of([](const ParameterBlock& block) { return block.weight_bytes(); });
  memory.gradient_bytes = sum_of([](const ParameterBlock& block) { return block.gradient_bytes(); });
  memory.optimizer_bytes = !options_.is_optimizer_on_host ? optimizer_bytes() : 0;
  memory.unsharded_bytes = stacked([](const ParameterBlock& block) {
    const bool is_gathered = block.shares().zero() == 3 && !block.shares().gathers_layers();
    return is_gathered ? block.version_bytes() : 0;
  });
  return memory;
}

std::vector<StageMemory> DeviceStage::microbatch_memory() const {
  std::vector<StageMemory> memory;
  for (std::size_t i = 0; i < options_.kept_microbatches.size(); ++i)
    memory.push_back(slice_memory(static_cast<int>(i)));
  return memory;
}

/// From F, or R, on.
DeviceStage::LayerMemory DeviceStage::memory_of(const DevicePass& pass, std::size_t layer) const {
  const StageLayout& layout = layout_of(pass);
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
  const DeviceLayerBytes& own = slice_of(pass).layers[layer].bytes;
  const StageLayout& layout = layout_of(pass);
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
  const Slice& slice = slice_of(pass);
  const PlacedLayer& placed = slice.layers[layer];
  const std::int64_t token = pass.microbatch * tokens_ + slice.first_row;
  const StoredWeights weights = common().weights_of(layer, version_of(0, pass), pass.moved);
  return {.kernels = kernels,
          .early = memory.early,
          .late = memory.late,
          .cheap = memory.cheap,
          .workspace = pass.workspace + 2 * slice.layout.bytes.passing,
          .passing = pass.workspace + static_cast<std::int64_t>(layer % 2) * slice.layout.bytes.passing,
          .sequences = pass.sequences == nullptr ? nullptr : pass.sequences + placed.before.sequences,
          .sequence_gradients =
              pass.sequence_gradients == nullptr
                  ? nullptr
                  : pass.sequence_gradients + placed.before.sequence_gradients / std::int64_t{sizeof(float)},
          .weights = weights.stored,
          .vectors = weights.vectors,
          .packed = weights.packed,
          .first_element = common().places().first_element[layer],
          .first_packed = weights.first_packed,
          .gradients = common().gradients_of(layer, whole_gradients_of(0, pass), pass.moved),
          .expert_weights =
              has_experts() ? blocks_.back().weights_of(layer, version_of(1, pass), pass.moved).stored : nullptr,
          .expert_gradients =
              has_experts() ? blocks_.back().gradients_of(layer, whole_gradients_of(1, pass), pass.moved) : nullptr,
          .constants = device_constants_ == nullptr ? nullptr : device_constants_ + placed.constants,
          .tokens = token_numbers_ == nullptr ? nullptr : token_numbers_ + token,
          .targets = target_numbers_ == nullptr ? nullptr : target_numbers_ + token,
          .samples = samples_ == nullptr ? nullptr : samples_ + pass.microbatch * sample_bytes(),
          .sample_targets =
              sample_targets_ == nullptr ? nullptr : sample_targets_ + pass.microbatch * sample_target_elements(),
          .losses = losses_ == nullptr ? nullptr : losses_ + token,
          .balance_losses = balance_losses_ == nullptr
                                ? nullptr
                                : balance_losses_ + token + placed.expert_layers * options_.microbatches * tokens_,
          .gradient_scale = options_.gradient_scales[static_cast<std::size_t>(pass.microbatch)],
          .loss_scale = options_.agrees ? &numbers_->loss_scale : nullptr,
          .tensor = {.recorder = pass.recorder,
                     .seat = options_.tensor_group,
                     .divides_rows = options_.work.sequence_parallel},
          .context = {.recorder = pass.recorder, .seat = options_.context_group, .tokens = slice.tokens},
          .experts = {.recorder = pass.recorder, .seat = options_.expert_group},
          .seed = options_.seed,
          .layer_number = options_.first_layer + static_cast<int>(layer),
          .first_sample = options_.first_sample + pass.microbatch * options_.sample_stride,
          .numbers = numbers_,
          .rebuilds_cheap = layout_of(pass).rebuild.what == Rebuild::kSelective};
}

/// `input` is copied to where the first layer takes it; the last one writes `output`.
template <class MemoryOf>
void DeviceStage::run_group(DeviceKernels& kernels, const DevicePass& pass, const StageLayout::Group& group,
                            const std::byte* input, std::byte* output, MemoryOf memory_of) const {
  const auto call = [&](std::size_t layer) { return call_of(kernels, pass, layer, memory_of(layer)); };
  const auto input_at = [&](std::size_t layer) { return address_of(call(layer), layer_of(pass, layer).input()); };
  if (std::byte* const first = input_at(group.first); first != nullptr && input != first)
    kernels.copy(first, input, input_elements(options_.layers[group.first], slice_of(pass).work) * element_bytes_);
  for (std::size_t i = group.first; i < group.end; ++i) {
    fetch_forward(pass, i);
    layer_of(pass, i).forward(call(i), i + 1 < group.end ? input_at(i + 1) : output);
  }
}

void DeviceStage::forward(DeviceKernels& kernels, const DevicePass& pass) const {
  const auto memory = [&](std::size_t layer) { return forward_memory(pass, layer); };
  const StageLayout& layout = layout_of(pass);
  if (!layout.rebuild.keeps_inputs()) {
    const StageLayout::Group whole{.first = 0, .end = options_.layers.size()};
    return run_group(kernels, pass, whole, pass.incoming, pass.outgoing, memory);
  }
  if (pass.incoming != nullptr) kernels.copy(pass.late, pass.incoming, input_bytes(pass.slice));
  const std::vector<StageLayout::Group>& groups = layout.groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::byte* const output = i + 1 < groups.size() ? pass.late + groups[i + 1].kept : pass.outgoing;
    run_group(kernels, pass, groups[i], pass.late + groups[i].kept, output, memory);
  }
}

void DeviceStage::rebuild_group(DeviceKernels& kernels, const DevicePass& pass, const StageLayout::Group& group) const {
  const auto memory = [&](std::size_t layer) { return memory_of(pass, layer); };
  const StageLayout& layout = layout_of(pass);
  if (!layout.rebuild.keeps_inputs()) {
    for (std::size_t i = group.first; i < group.end; ++i) {
      fetch(pass, i, std::nullopt);
      layer_of(pass, i).rebuild_cheap(call_of(kernels, pass, i, memory(i)));
    }
    return;
  }
  const bool has_output = output_elements(options_.layers[group.end - 1], slice_of(pass).work) > 0;
  run_group(kernels, pass, group, pass.late + group.kept,
            has_output ? pass.workspace + layout.bytes.forward_workspace : nullptr, memory);
}

void DeviceStage::open_sequence_gradients(DeviceKernels& kernels, const DevicePass& pass) const {
  kernels.fill_zero(pass.sequence_gradients, sequence_gradient_bytes() / std::int64_t{sizeof(float)});
}

void DeviceStage::recompute(DeviceKernels& kernels, const DevicePass& pass) const {
  for (const StageLayout::Group& group : layout_of(pass).groups) rebuild_group(kernels, pass, group);
}

/// What comes from the next stage, to where the last layer takes it.
void DeviceStage::take_output_gradient(DeviceKernels& kernels, const DevicePass& pass) const {
  if (pass.incoming == nullptr) return;
  const std::size_t last = options_.layers.size() - 1;
  const DeviceLayerCall call = call_of(kernels, pass, last, memory_of(pass, last));
  kernels.copy(address_of(call, layer_of(pass, last).output_gradient()), pass.incoming, output_bytes(pass.slice));
}

template <class Visit>
void DeviceStage::go_back(DeviceKernels& kernels, const DevicePass& pass, bool recomputes, Visit visit) const {
  const StageLayout& layout = layout_of(pass);
  const auto output_gradient = [&](std::size_t layer) {
    return address_of(call_of(kernels, pass, layer, memory_of(pass, layer)), layer_of(pass, layer).output_gradient());
  };
  const bool rebuilds = recomputes && layout.rebuild.what != Rebuild::kNothing;
  if (!rebuilds || layout.rebuild.at_once) {
    if (rebuilds) recompute(kernels, pass);
    take_output_gradient(kernels, pass);
    for (std::size_t i = options_.layers.size(); i-- > 0;) visit(i, i > 0 ? output_gradient(i - 1) : pass.outgoing);
    return;
  }
  // All groups have one place, in which the one before is computed again over the gradient that it waits for.
  const bool share_a_place = layout.rebuild.keeps_inputs();
  std::byte* const between = pass.workspace + std::max(layout.rebuild_workspace(), layout.bytes.backward_workspace);
  for (std::size_t g = layout.groups.size(); g-- > 0;) {
    const StageLayout::Group& group = layout.groups[g];
    rebuild_group(kernels, pass, group);
    if (g + 1 == layout.groups.size())
      take_output_gradient(kernels, pass);
    else if (share_a_place && output_gradient(group.end - 1) != nullptr)
      kernels.copy(output_gradient(group.end - 1), between,
                   output_elements(options_.layers[group.end - 1], slice_of(pass).work) * element_bytes_);
    for (std::size_t i = group.end; i-- > group.first;) {
      std::byte* gradient = pass.outgoing;
      if (i > group.first || (i > 0 && !share_a_place))
        gradient = output_gradient(i - 1);
      else if (i > 0)
        gradient = between;
      visit(i, gradient);
    }
  }
}

void DeviceStage::input_grad(DeviceKernels& kernels, const DevicePass& pass, bool recomputes) const {
  go_back(kernels, pass, recomputes, [&](std::size_t layer, std::byte* gradient) {
    fetch_backward(pass, layer);
    open_layer(kernels, pass, layer);
    layer_of(pass, layer).input_grad(call_of(kernels, pass, layer, memory_of(pass, layer)), gradient);
    leave_vectors(kernels, pass, layer);
  });
}

void DeviceStage::weight_grad(DeviceKernels& kernels, const DevicePass& pass, CallRecorder* buckets) const {
  for (std::size_t i = options_.layers.size(); i-- > 0;) {
    fetch_backward(pass, i);
    open_layer(kernels, pass, i);
    layer_of(pass, i).weight_grad(call_of(kernels, pass, i, memory_of(pass, i)));
    take_vectors(kernels, pass, i);
    reduce_layer(pass, i);
    complete_layer(buckets, i);
  }
}

/// Behind the layer's weight gradient.
void DeviceStage::complete_layer(CallRecorder* buckets, std::size_t layer) const {
  if (buckets == nullptr) return;
  const std::vector<std::size_t>& first_layers = common().shares().first_layers();
  for (std::size_t bucket = 0; bucket < first_layers.size(); ++bucket)
    if (first_layers[bucket] == layer) buckets->complete_bucket(static_cast<int>(bucket));
}

void DeviceStage::layer_backward(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer, std::byte* gradient,
                                 CallRecorder* buckets) const {
  fetch_backward(pass, layer);
  open_layer(kernels, pass, layer);
  const DeviceLayerCall call = call_of(kernels, pass, layer, memory_of(pass, layer));
  layer_of(pass, layer).input_grad(call, gradient);
  layer_of(pass, layer).weight_grad(call);
  reduce_layer(pass, layer);
  complete_layer(buckets, layer);
}

void DeviceStage::backward(DeviceKernels& kernels, const DevicePass& pass, bool recomputes,
                           CallRecorder* buckets) const {
  go_back(kernels, pass, recomputes,
          [&](std::size_t layer, std::byte* gradient) { layer_backward(kernels, pass, layer, gradient, buckets); });
}

}}  // namespace plumb::executor
