#include "executor/nccl/stage_exchanges.h"

#include <algorithm>

#include "executor/cpu/parameters/layer_moves.h"
#include "executor/division/sequence_slice.h"
#include "executor/division/tensor_division.h"

namespace plumb { inline namespace executor {
namespace {

bool has_experts(const std::vector<Layer>& layers) {
  return std::ranges::any_of(layers, [](const Layer& layer) {
    const auto* block = std::get_if<TransformerLayer>(&layer);
    return block != nullptr && block->experts > 0;
  });
}

/// The elements of each bucket, whose layers follow each other from the last on; all in one without buckets.
/// The whole block where there are no buckets.
std::vector<ElementRange> reduced_ranges(const ParameterPlaces& places, const std::vector<int>& bucket_layers) {
  if (bucket_layers.empty()) return {{0, places.first_element.back()}};
  return bucket_ranges(places, bucket_layers);
}

/// Where a parameter of that name lies in the block; count 0 if there is none.
ElementRange table_of(const ParameterPlaces& places, std::size_t layer, const char* name) {
  for (const PlacedParameter& parameter : places.parameters)
    if (parameter.layer == layer && parameter.tensor.name == name) return {parameter.first, parameter.count};
  return {};
}

ExchangeShape shape_of(const RunSpec& spec, const TrainingPlan& plan, int pipeline_rank, int slice) {
  const RankGrid& grid = plan.replay.grid;
  const int context = grid.grid.context;
  const TokenRange tokens = slice_tokens(spec.sequence, plan.replay.slices, slice);
  return {.tensor = mesh_of(grid, pipeline_rank).tensor,
          .context = context,
          .expert = grid.grid.expert,
          .sequence_parallel = spec.sequence_parallel,
          .attention = spec.context_attention,
          .sequences = spec.microbatch / std::max(1, parts_of_microbatch(grid, pipeline_rank)),
          .tokens = tokens.count / std::max(1, context),
          .block_tokens = (tokens.first + tokens.count) / std::max(1, context),
          .sequence = spec.sequence};
}

}  // namespace

PartExchanges::PartExchanges(const RunSpec& spec, const TrainingPlan& plan, int stage, ParameterPart part, int copies)
    : places_(parameter_places(
          divide_layers(
              spec.stage_layers[static_cast<std::size_t>(stage)],
              mesh_of(plan.replay.grid, plan.replay.schedule.stages[static_cast<std::size_t>(stage)].rank).tensor),
          part, part == ParameterPart::kExperts ? plan.replay.grid.grid.expert : 1)),
      group_(part == ParameterPart::kCommon ? ExchangeGroup::kCopies : ExchangeGroup::kExpertCopies),
      copies_(copies),
      zero_(copies > 1 ? spec.zero : 0),
      layerwise_(spec.layerwise),
      half_(spec.half.has_value()),
      shard_by_(spec.shard_by),
      bounds_(spec.shard_by == ShardBy::kElement ? shares_by_element(places_.first_element.back(), copies)
                                                 : shares_by_layer(places_, copies)),
      buckets_(reduced_ranges(places_, plan.bucket_layers[static_cast<std::size_t>(stage)])) {
  for (const std::int64_t bound : bounds_) word_bounds_.push_back(half_ ? (bound + 1) / 2 : bound);
}

std::vector<LayerExchange> PartExchanges::shares(CollectiveKind whole, CollectiveKind by_owner,
                                                 const std::vector<std::int64_t>& bounds) const {
  if (shard_by_ == ShardBy::kElement) return {{.group = group_, .op = whole, .elements = bounds.back()}};
  std::vector<LayerExchange> exchanges;
  for (std::size_t owner = 0; owner + 1 < bounds.size(); ++owner)
    if (bounds[owner] < bounds[owner + 1])
      exchanges.push_back({.group = group_,
                           .op = by_owner,
                           .elements = bounds[owner + 1] - bounds[owner],
                           .root = static_cast<int>(owner)});
  return exchanges;
}

std::vector<LayerExchange> PartExchanges::reduce_shares(ElementRange range) const {
  return shares(CollectiveKind::kReduceScatter, CollectiveKind::kReduce, clipped_bounds(bounds_, range));
}

std::vector<LayerExchange> PartExchanges::gather_words(ElementRange range) const {
  return shares(CollectiveKind::kAllGather, CollectiveKind::kBroadcast, clipped_bounds(word_bounds_, range));
}

std::vector<LayerExchange> PartExchanges::reduction(std::size_t bucket) const {
  if (copies_ == 1) return {};
  if (zero_ == 0) return {{.group = group_, .op = CollectiveKind::kAllReduce, .elements = buckets_[bucket].count}};
  if (zero_ == 1) return reduce_shares(buckets_[bucket]);
  if (layerwise_) return {};
  return reduce_shares({0, places_.first_element.back()});
}

std::vector<LayerExchange> PartExchanges::gather() const {
  if (copies_ == 1 || (layerwise_ && zero_ == 3)) return {};
  return gather_words({0, word_bounds_.back()});
}

std::vector<LayerExchange> PartExchanges::range(ElementRange range) const {
  if (copies_ == 1 || zero_ == 0) return {};
  return shares(CollectiveKind::kAllGather, CollectiveKind::kBroadcast, clipped_bounds(bounds_, range));
}

std::vector<LayerExchange> PartExchanges::layer_reduction(std::size_t layer) const {
  const std::int64_t first = places_.first_element[layer], end = places_.first_element[layer + 1];
  if (copies_ == 1 || !layerwise_ || zero_ < 2 || first == end) return {};
  return reduce_shares({first, end - first});
}

std::vector<LayerExchange> PartExchanges::layer_gather(std::size_t layer) const {
  const std::int64_t first = places_.first_element[layer], end = places_.first_element[layer + 1];
  if (copies_ == 1 || !layerwise_ || zero_ < 3 || first == end) return {};
  return half_ ? gather_words({first / 2, (end + 1) / 2 - first / 2}) : gather_words({first, end - first});
}

StageExchanges stage_exchanges(const RunSpec& spec, const TrainingPlan& plan, int stage) {
  const std::vector<Layer>& layers = spec.stage_layers[static_cast<std::size_t>(stage)];
  const int rank = plan.replay.schedule.stages[static_cast<std::size_t>(stage)].rank;
  StageExchanges result;
  for (int slice = 0; slice < plan.replay.slices; ++slice) {
    const ExchangeShape shape = shape_of(spec, plan, rank, slice);
    auto& of_slice = result.layers.emplace_back();
    for (const Layer& layer : layers) {
      auto& passes = of_slice.emplace_back();
      for (const Pass pass : {Pass::kForward, Pass::kInputGrad, Pass::kWeightGrad})
        passes.push_back(layer_exchanges(layer, shape, pass));
    }
    const LayerWork work{.microbatch = shape.sequences,
                         .sequence = shape.tokens,
                         .tensor_parallel = shape.tensor,
                         .sequence_parallel = shape.sequence_parallel};
    const auto words = [&](std::int64_t elements) { return spec.half ? (elements + 1) / 2 : elements; };
    result.input_words.push_back(words(input_elements(layers.front(), work)));
    result.output_words.push_back(words(output_elements(layers.back(), work)));
  }
  const RankGrid& grid = plan.replay.grid;
  const int copies = copies_of_stages(plan.replay.schedule, grid)[static_cast<std::size_t>(stage)];
  result.parts.emplace_back(spec, plan, stage, ParameterPart::kCommon, copies);
  if (has_experts(layers))
    result.parts.emplace_back(spec, plan, stage, ParameterPart::kExperts, copies / std::max(1, grid.grid.expert));
  const ParameterPlaces& places = result.parts.front().places();
  result.tied_embedding = table_of(places, 0, "tokens.weight");
  result.tied_head = table_of(places, layers.size() - 1, "projection.weight");
  return result;
}

}}  // namespace plumb::executor
