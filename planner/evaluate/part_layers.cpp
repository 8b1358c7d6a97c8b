#include "planner/evaluate/part_layers.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns [layer] its kind, where only the first `rebuilt` transformer layers of each part are rebuilt: the others are
/// of kinds behind all of these (stage_passes.h).
std::vector<int> kinds_with_kept_layers(const Pricing& pricing, const std::vector<int>& split, int rebuilt) {
  std::vector<int> kinds = pricing.kind_of_layer();
  std::size_t layer = 1;  // behind the embedding
  for (const int layers : split) {
    for (int in_part = 0; in_part < layers; ++in_part, ++layer)
      if (in_part >= rebuilt) kinds[layer] += static_cast<int>(pricing.kinds().size());
  }
  return kinds;
}

}  // namespace

PartLayers::PartLayers(const Pricing& pricing, const Layout& layout, const std::vector<int>& split) {
  const GraphTables* graph = pricing.graph();
  of_model_ = graph != nullptr ? graph->kind_of_node : pricing.kind_of_layer();
  if (layout.recompute_layers > 0) with_kept_ = kinds_with_kept_layers(pricing, split, layout.recompute_layers);
  first_.reserve(split.size() + 1);
  first_.push_back(0);
  std::size_t end = graph != nullptr ? 0 : 1;  // behind the embedding
  for (const int layers : split) first_.push_back(end += static_cast<std::size_t>(layers));
  if (graph == nullptr) ++first_.back();  // the head
}

}}  // namespace plumb::planner
