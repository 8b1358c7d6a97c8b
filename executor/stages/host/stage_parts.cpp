#include "executor/stages/host/stage_parts.h"

#include <algorithm>

namespace plumb { inline namespace executor {
namespace {

/// Returns the work of a slice of the stage's groups together, as the programs of layers divide it.
LayerWork whole_work(const CpuStageOptions& options, int slice) {
  const LayerSeat seat = layer_seat(options);
  const TokenRange tokens = slice_tokens(options.sequence, options.slices, slice);
  return {.microbatch = options.microbatch,
          .sequence = tokens.count,
          .whole_sequence = options.sequence,
          .earlier_tokens = tokens.first,
          .tensor_parallel = seat.tensor.ranks,
          .sequence_parallel = options.sequence_parallel,
          .context_parallel = seat.context.ranks,
          .exchanges_heads = seat.context.attention == ContextAttention::kUlysses,
          .experts = {.parallel = seat.experts.ranks, .tensor = seat.experts.tensor.ranks}};
}

}  // namespace

LayerSeat layer_seat(const CpuStageOptions& options) {
  LayerSeat seat;
  if (const Communicator* tensor = options.groups.tensor) seat.tensor = {tensor->members(), tensor->member()};
  if (const Communicator* context = options.groups.context)
    seat.context = {context->members(), context->member(), options.context_attention};
  if (const Communicator* expert = options.groups.expert) seat.experts = {expert->members(), expert->member()};
  seat.experts.tensor = {options.expert_tensor, seat.tensor.rank % options.expert_tensor};
  return seat;
}

ContextTokens tokens_of_slice(const CpuStageOptions& options, int slice) {
  return context_tokens(slice_tokens(options.sequence, options.slices, slice), layer_seat(options).context);
}

std::vector<std::unique_ptr<CpuLayer>> make_layers(const CpuStageOptions& options) {
  std::vector<LayerWork> works;
  for (int slice = 0; slice < options.slices; ++slice) works.push_back(whole_work(options, slice));
  std::vector<std::unique_ptr<CpuLayer>> layers;
  for (const Layer& layer : options.layers)
    layers.push_back(std::make_unique<CpuLayer>(layer, works, layer_seat(options)));
  return layers;
}

std::size_t scratch_elements(const std::vector<std::unique_ptr<CpuLayer>>& layers) {
  std::int64_t elements = 0;
  for (const auto& layer : layers) elements = std::max(elements, layer->scratch_elements());
  return static_cast<std::size_t>(elements);
}

std::vector<CpuContext> slice_contexts(const CpuStageOptions& options, TensorPool& pool, float* scratch) {
  std::vector<CpuContext> contexts;
  for (int slice = 0; slice < options.slices; ++slice) {
    const ContextTokens tokens = tokens_of_slice(options, slice);
    const bool is_divided = options.slices > 1 || options.groups.context != nullptr;
    contexts.push_back({.kernels = CpuKernelSet(options.kernel_log),
                        .pool = &pool,
                        .work = {.microbatch = options.microbatch,
                                 .sequence = tokens.count(),
                                 .tensor_parallel = layer_seat(options).tensor.ranks,
                                 .sequence_parallel = options.sequence_parallel,
                                 .experts = {.parallel = layer_seat(options).experts.ranks,
                                             .tensor = layer_seat(options).experts.tensor.ranks}},
                        .scratch = scratch,
                        .first_token = slice_tokens(options.sequence, options.slices, slice).first,
                        .whole_sequence = is_divided ? options.sequence : 0,
                        .slices = options.slices,
                        .slice = slice,
                        .text = options.text,
                        .samples = options.samples,
                        .groups = options.groups,
                        .seat = layer_seat(options)});
  }
  return contexts;
}

std::vector<std::size_t> group_starts(const CpuStageOptions& options) {
  const std::size_t layers = options.layers.size();
  const std::size_t group =
      options.rebuild == Recompute::kFull ? static_cast<std::size_t>(options.rebuild_layers) : layers;
  std::vector<std::size_t> starts;
  for (std::size_t first = 0; first < layers; first += group) starts.push_back(first);
  return starts;
}

CpuParameterOptions parameter_options(const CpuStageOptions& options, ParameterPart part) {
  const LayerSeat seat = layer_seat(options);
  const bool is_common = part == ParameterPart::kCommon;
  const int copies = is_common ? options.copies : options.expert_copies;
  const ParameterPlaces places = parameter_places(
      divide_layers(options.layers, seat.tensor.ranks, seat.experts.tensor.ranks), part, seat.experts.ranks);
  const bool by_element = options.shard_by == ShardBy::kElement;
  return {.layers = options.layers,
          .tensor = seat.tensor,
          .part = part,
          .experts = seat.experts,
          .first_layer = options.first_layer,
          .optimizer = options.optimizer,
          .seed = options.seed,
          .half = options.half,
          .zero = copies > 1 || is_common ? options.zero : 0,
          .shares = {.bounds = by_element ? shares_by_element(places.first_element.back(), copies)
                                          : shares_by_layer(places, copies),
                     .member = is_common ? options.copy : options.expert_copy},
          .shard_by = options.shard_by,
          .buckets = bucket_ranges(places, options.bucket_layers),
          .layerwise = is_common ? options.layerwise : options.expert_layerwise,
          .state_pool = options.state_pool};
}

std::unique_ptr<CpuParameters> make_expert_parameters(const CpuStageOptions& options, TensorPool& pool) {
  const auto has_experts = [](const Layer& layer) {
    const auto* block = std::get_if<TransformerLayer>(&layer);
    return block != nullptr && block->experts > 0;
  };
  if (std::ranges::none_of(options.layers, has_experts)) return nullptr;
  return std::make_unique<CpuParameters>(parameter_options(options, ParameterPart::kExperts), pool);
}

}}  // namespace plumb::executor
