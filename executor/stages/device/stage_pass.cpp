#include "executor/stages/device/stage_pass.h"

#include <algorithm>
#include <optional>

namespace plumb { inline namespace executor {

StagePass::StagePass(const PassStage& stage, CallRecorder& recorder, const DevicePass& pass)
    : stage_(stage),
      recorder_(recorder),
      pass_(pass),
      slice_(stage.slices.slice(pass.slice)),
      layout_(stage.slices.layout_of(slice_, pass.microbatch)),
      moves_(stage.parameters, recorder, pass.parameters.moved, layout_.rebuild.what == Recompute::kNone) {}

/// Places from F, or R, on.
StagePass::LayerMemory StagePass::memory_of(std::size_t layer) const {
  const StageLayout::LayerPlace& placed = layout_.layers[layer];
  const auto at_bases = [&](std::byte* early, std::byte* late, std::byte* cheap) {
    return LayerMemory{.early = early + placed.early, .late = late + placed.late, .cheap = cheap + placed.cheap};
  };
  if (layout_.rebuild.keeps_inputs()) return at_bases(pass_.rebuilt_early, pass_.rebuilt_late, pass_.rebuilt_late);
  if (layout_.rebuild.what == Recompute::kSelective)  // all that is kept goes at once
    return at_bases(pass_.late + layout_.bytes.late, pass_.late, pass_.rebuilt_late);
  return at_bases(pass_.early, pass_.late, pass_.late);
}

/// While F runs, tensors that are not kept lie in the workspace: where F keeps inputs alone, by turns in one of two
/// places, as a layer writes its output into the next one's.
StagePass::LayerMemory StagePass::forward_memory(std::size_t layer) const {
  const DeviceLayerBytes& own = slice_.layers[layer].layer.bytes();
  std::byte* const spare = pass_.workspace + layout_.bytes.forward_workspace;
  if (layout_.rebuild.keeps_inputs()) {
    std::byte* const here = spare + static_cast<std::int64_t>(layer % 2) * layout_.forgotten_bytes;
    return {.early = here, .late = here + own.early, .cheap = here + own.early + own.late};
  }
  LayerMemory memory = memory_of(layer);
  if (layout_.rebuild.what == Recompute::kSelective) memory.cheap = spare;
  return memory;
}

DeviceLayerCall StagePass::call_of(std::size_t layer, const LayerMemory& memory) {
  const DeviceStageOptions& options = stage_.options;
  const PlacedLayer& placed = slice_.layers[layer];
  const StageParameters& parameters = stage_.parameters;
  const StoredWeights weights = parameters.weights_of(0, layer, pass_.parameters);
  const bool has_experts = stage_.data.has_experts();
  const StageDataPlaces data = stage_.data.places_of(pass_.microbatch, slice_.first_row, placed.expert_layers);
  return {
      .kernels = recorder_,
      .early = memory.early,
      .late = memory.late,
      .cheap = memory.cheap,
      .workspace = pass_.workspace + 2 * slice_.layout.bytes.passing,
      .passing = pass_.workspace + static_cast<std::int64_t>(layer % 2) * slice_.layout.bytes.passing,
      .sequences = pass_.sequences == nullptr ? nullptr : pass_.sequences + placed.sequences,
      .sequence_gradients = pass_.sequence_gradients == nullptr
                                ? nullptr
                                : pass_.sequence_gradients + placed.sequence_gradients / std::int64_t{sizeof(float)},
      .weights = weights.stored,
      .vectors = weights.vectors,
      .packed = weights.packed,
      .first_element = parameters.common().layout().places().first_element[layer],
      .first_packed = weights.first_packed,
      .gradients = parameters.gradients_of(0, layer, pass_.parameters),
      .expert_weights = has_experts ? parameters.weights_of(1, layer, pass_.parameters).stored : nullptr,
      .expert_gradients = has_experts ? parameters.gradients_of(1, layer, pass_.parameters) : nullptr,
      .constants = stage_.constants == nullptr ? nullptr : stage_.constants + placed.constants,
      .tokens = data.tokens,
      .targets = data.targets,
      .samples = data.samples,
      .sample_targets = data.sample_targets,
      .losses = data.losses,
      .balance_losses = data.balance_losses,
      .gradient_scale = options.gradient_scales[static_cast<std::size_t>(pass_.microbatch)],
      .loss_scale = options.agrees ? &stage_.numbers->loss_scale : nullptr,
      .tensor = {.recorder = &recorder_, .seat = options.tensor_group, .divides_rows = options.work.sequence_parallel},
      .context = {.recorder = &recorder_, .seat = options.context_group, .tokens = slice_.tokens},
      .experts = {.recorder = &recorder_, .seat = options.expert_group},
      .seed = options.seed,
      .layer_number = options.first_layer + static_cast<int>(layer),
      .first_sample = options.first_sample + pass_.microbatch * options.sample_stride,
      .numbers = stage_.numbers,
      .rebuilds_cheap = layout_.rebuild.what == Recompute::kSelective};
}

void StagePass::fetch_forward(std::size_t layer) {
  moves_.fetch(layer, layer + 1 < layers() ? std::optional(layer + 1) : std::nullopt);
}

void StagePass::fetch_backward(std::size_t layer) {
  moves_.fetch(layer, layer > 0 ? std::optional(layer - 1) : std::nullopt);
}

/// Runs the forward of a group. `input` is copied to where the first layer takes it; the last layer writes `output`.
template <class MemoryOf>
void StagePass::run_group(const StageLayout::Group& group, const std::byte* input, std::byte* output,
                          MemoryOf memory_of) {
  const auto input_at = [&](std::size_t number) {
    return address_of(call_of(number, memory_of(number)), layer(number).input());
  };
  if (std::byte* const first = input_at(group.first); first != nullptr && input != first)
    recorder_.copy(first, input,
                   input_elements(stage_.slices.layers()[group.first], slice_.work) * stage_.slices.element_bytes());
  for (std::size_t i = group.first; i < group.end; ++i) {
    fetch_forward(i);
    layer(i).forward(call_of(i, memory_of(i)), i + 1 < group.end ? input_at(i + 1) : output);
  }
}

void StagePass::forward() {
  const auto memory = [&](std::size_t number) { return forward_memory(number); };
  if (!layout_.rebuild.keeps_inputs())
    return run_group({.first = 0, .end = layers()}, pass_.incoming, pass_.outgoing, memory);
  if (pass_.incoming != nullptr) recorder_.copy(pass_.late, pass_.incoming, stage_.slices.input_bytes(pass_.slice));
  const std::vector<StageLayout::Group>& groups = layout_.groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::byte* const output = i + 1 < groups.size() ? pass_.late + groups[i + 1].kept : pass_.outgoing;
    run_group(groups[i], pass_.late + groups[i].kept, output, memory);
  }
}

void StagePass::rebuild_group(const StageLayout::Group& group) {
  if (!layout_.rebuild.keeps_inputs()) {
    for (std::size_t i = group.first; i < group.end; ++i) {
      moves_.fetch(i, std::nullopt);
      layer(i).rebuild_cheap(call_of(i));
    }
    return;
  }
  const bool has_output = output_elements(stage_.slices.layers()[group.end - 1], slice_.work) > 0;
  run_group(group, pass_.late + group.kept, has_output ? pass_.workspace + layout_.bytes.forward_workspace : nullptr,
            [&](std::size_t number) { return memory_of(number); });
}

void StagePass::recompute() {
  for (const StageLayout::Group& group : layout_.groups) rebuild_group(group);
}

std::byte* StagePass::output_gradient_of(std::size_t number) {
  return address_of(call_of(number), layer(number).output_gradient());
}

/// Copies the gradient that comes from the next stage to where the last layer takes it.
void StagePass::take_output_gradient() {
  if (pass_.incoming != nullptr)
    recorder_.copy(output_gradient_of(layers() - 1), pass_.incoming, stage_.slices.output_bytes(pass_.slice));
}

/// Calls visit(layer, where the gradient of its input goes) from the last layer to the first.
template <class Visit>
void StagePass::go_back(Visit visit) {
  const bool rebuilds = pass_.recomputes && layout_.rebuild.what != Recompute::kNone;
  if (!rebuilds || layout_.rebuild.at_once) {
    if (rebuilds) recompute();
    take_output_gradient();
    for (std::size_t i = layers(); i-- > 0;) visit(i, i > 0 ? output_gradient_of(i - 1) : pass_.outgoing);
    return;
  }
  // All groups have one place, in which the one before is computed again over the gradient that it waits for.
  const bool share_a_place = layout_.rebuild.keeps_inputs();
  std::byte* const between = pass_.workspace + std::max(layout_.rebuild_workspace(), layout_.bytes.backward_workspace);
  for (std::size_t g = layout_.groups.size(); g-- > 0;) {
    const StageLayout::Group& group = layout_.groups[g];
    rebuild_group(group);
    if (g + 1 == layout_.groups.size())
      take_output_gradient();
    else if (share_a_place && output_gradient_of(group.end - 1) != nullptr)
      recorder_.copy(
          output_gradient_of(group.end - 1), between,
          output_elements(stage_.slices.layers()[group.end - 1], slice_.work) * stage_.slices.element_bytes());
    for (std::size_t i = group.end; i-- > group.first;) {
      std::byte* gradient = pass_.outgoing;
      if (i > group.first || (i > 0 && !share_a_place))
        gradient = output_gradient_of(i - 1);
      else if (i > 0)
        gradient = between;
      visit(i, gradient);
    }
  }
}

void StagePass::input_grad() {
  go_back([&](std::size_t number, std::byte* gradient) {
    fetch_backward(number);
    moves_.open(number);
    layer(number).input_grad(call_of(number), gradient);
    moves_.leave_vectors(number);
  });
}

void StagePass::weight_grad() {
  for (std::size_t i = layers(); i-- > 0;) {
    fetch_backward(i);
    moves_.open(i);
    layer(i).weight_grad(call_of(i));
    moves_.take_vectors(i);
    moves_.reduce(i);
    complete_layer(i);
  }
}

/// Marks the buckets that are complete behind the layer's weight gradient.
void StagePass::complete_layer(std::size_t number) {
  if (!pass_.completes_buckets) return;
  const std::vector<std::size_t>& first_layers = stage_.parameters.common().layout().shares().first_layers();
  for (std::size_t bucket = 0; bucket < first_layers.size(); ++bucket)
    if (first_layers[bucket] == number) recorder_.complete_bucket(static_cast<int>(bucket));
}

void StagePass::backward() {
  go_back([&](std::size_t number, std::byte* gradient) {
    fetch_backward(number);
    moves_.open(number);
    const DeviceLayerCall call = call_of(number);
    layer(number).input_grad(call, gradient);
    layer(number).weight_grad(call);
    moves_.reduce(number);
    complete_layer(number);
  });
}

}}  // namespace plumb::executor
