#include "executor/stages/device/stage_slices.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "executor/spec/division/sequence_slice.h"
#include "kernels/layer/layer_ends.h"

namespace plumb { inline namespace executor {
namespace {

DeviceSeat seat_of(const DeviceStageOptions& options, TokenRange slice, int number) {
  return {.tensor = options.tensor,
          .context = options.context,
          .experts = options.experts,
          .sequence = options.work.sequence * options.context.ranks,
          .slice = slice,
          .slices = options.slices,
          .slice_number = number};
}

bool has_experts(const Layer& layer) {
  const auto* block = std::get_if<TransformerLayer>(&layer);
  return block != nullptr && block->experts > 0;
}

}  // namespace

StageSlices::StageSlices(const DeviceStageOptions& options)
    : layers_(divide_layers(options.layers, options.tensor.ranks, options.experts.tensor.ranks)),
      kept_microbatches_(options.kept_microbatches),
      element_bytes_(options.half ? 2 : 4),
      tokens_(tokens_in(options.work)) {
  const std::int64_t whole = options.work.sequence * options.context.ranks;
  std::int64_t most_tokens = 0;
  for (int i = 0; i < options.slices; ++i) {
    const TokenRange shared = slice_tokens(whole, options.slices, i);
    StageSlice& slice = slices_.emplace_back();
    slice.number = i;
    slice.tokens = context_tokens(shared, options.context);
    slice.work = options.work;
    slice.work.sequence = slice.tokens.count();
    slice.first_row = options.work.microbatch * shared.first / options.context.ranks;
    place_layers(options, shared, slice);
    if (shared.count <= most_tokens) continue;
    most_tokens = shared.count;
    largest_ = i;
  }
}

void StageSlices::place_layers(const DeviceStageOptions& options, TokenRange shared, StageSlice& slice) {
  const DeviceSeat seat = seat_of(options, shared, slice.number);
  std::vector<DeviceLayerBytes> bytes;
  DeviceLayerBytes of_sequences;
  expert_layers_ = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    PlacedLayer& placed =
        slice.layers.emplace_back(PlacedLayer{.layer = DeviceLayer(options.layers[i], slice.work, element_bytes_, seat),
                                              .constants = static_cast<std::int64_t>(constants_.size()),
                                              .expert_layers = expert_layers_,
                                              .sequences = of_sequences.sequences,
                                              .sequence_gradients = of_sequences.sequence_gradients});
    if (has_experts(layers_[i])) ++expert_layers_;
    bytes.push_back(placed.layer.bytes());
    of_sequences.sequences += bytes.back().sequences;
    of_sequences.sequence_gradients += bytes.back().sequence_gradients;
    const std::vector<float> constants = placed.layer.constants();
    constants_.insert(constants_.end(), constants.begin(), constants.end());
  }
  of_sequences_ = of_sequences;  // every slice has the same, as they are of whole sequences
  slice.layout = stage_layout(layers_, bytes, slice.work, element_bytes_, options.rebuild);
  slice.kept_layout = stage_layout(layers_, bytes, slice.work, element_bytes_, {});
}

const StageLayout& StageSlices::layout_of(const StageSlice& slice, int microbatch) const {
  const bool is_kept =
      !kept_microbatches_.empty() && microbatch != kRebuilt && kept_microbatches_[static_cast<std::size_t>(microbatch)];
  return is_kept ? slice.kept_layout : slice.layout;
}

std::int64_t StageSlices::input_bytes(int slice) const {
  return input_elements(layers_.front(), this->slice(slice).work) * element_bytes_;
}

std::int64_t StageSlices::output_bytes(int slice) const {
  return output_elements(layers_.back(), this->slice(slice).work) * element_bytes_;
}

StageMemory StageSlices::memory_of(int microbatch) const {
  StageMemory memory = layout_of(slice(largest_), microbatch).microbatch_memory();
  for (const StageSlice& slice : slices_) {
    const StageMemory own = layout_of(slice, microbatch).microbatch_memory();
    memory.forward_workspace_bytes = std::max(memory.forward_workspace_bytes, own.forward_workspace_bytes);
    memory.backward_workspace_bytes = std::max(memory.backward_workspace_bytes, own.backward_workspace_bytes);
  }
  return memory;
}

std::vector<StageMemory> StageSlices::microbatch_memory() const {
  std::vector<StageMemory> memory;
  for (std::size_t i = 0; i < kept_microbatches_.size(); ++i) memory.push_back(memory_of(static_cast<int>(i)));
  return memory;
}

}}  // namespace plumb::executor
