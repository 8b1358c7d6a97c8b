#include "executor/layers/parameter_places.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace plumb { inline namespace executor {

std::int64_t parameter_offset(const Layer& layer, const std::string& name) {
  const std::vector<ParameterTensor> tensors = layer_parameters(layer);
  const auto named = std::ranges::find(tensors, name, &ParameterTensor::name);
  if (named == tensors.end()) return -1;
  return first_elements(tensors)[static_cast<std::size_t>(named - tensors.begin())];
}

ParameterPlaces parameter_places(const std::vector<Layer>& layers, ParameterPart part, int expert_ranks) {
  ParameterPlaces places;
  std::int64_t first = 0;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    places.first_element.push_back(first);
    std::size_t index = 0;
    for (ParameterTensor& tensor : layer_parameters(layers[layer], 1, {.parallel = expert_ranks})) {
      const std::size_t number = index++;
      if (!is_in(tensor, part)) continue;
      const std::int64_t count = element_count(tensor);
      places.parameters.push_back(
          {.layer = layer, .index = number, .tensor = std::move(tensor), .first = first, .count = count});
      first += count;
    }
  }
  places.first_element.push_back(first);
  return places;
}

std::vector<ElementRange> bucket_ranges(const ParameterPlaces& places, const std::vector<int>& bucket_layers) {
  std::vector<ElementRange> ranges;
  std::size_t layer = places.first_element.size() - 1;
  for (const int layers : bucket_layers) {
    const std::int64_t end = places.first_element[layer];
    layer -= static_cast<std::size_t>(layers);
    ranges.push_back({places.first_element[layer], end - places.first_element[layer]});
  }
  return ranges;
}

std::vector<ParameterPiece> pieces_in(const ParameterPlaces& places, ElementRange range) {
  std::vector<ParameterPiece> pieces;
  for (std::size_t i = 0; i < places.parameters.size(); ++i) {
    const PlacedParameter& parameter = places.parameters[i];
    const std::int64_t first = std::max(parameter.first, range.first);
    const std::int64_t end = std::min(parameter.first + parameter.count, range.first + range.count);
    if (first < end)
      pieces.push_back({.parameter = i,
                        .first_in_tensor = first - parameter.first,
                        .first_in_range = first - range.first,
                        .count = end - first});
  }
  return pieces;
}

std::vector<ElementRange> uncounted_elements(const ParameterPlaces& places, const std::vector<Layer>& layers,
                                             const TensorSeat& seat, const ExpertSeat& experts) {
  std::vector<ElementRange> ranges;
  for (const PlacedParameter& parameter : places.parameters) {
    if (parameter.tensor.split_dimension < 0) {
      const TensorSeat& sharers = parameter.tensor.expert ? experts.tensor : seat;
      if (sharers.rank > 0 || parameter.tensor.balance_rate > 0) ranges.push_back({parameter.first, parameter.count});
      continue;
    }
    for (const ElementRun& run : element_runs(layers[parameter.layer], parameter.index, seat, experts))
      if (run.is_replica) ranges.push_back({parameter.first + run.local, run.count});
  }
  return ranges;
}

std::vector<std::int64_t> shares_by_element(std::int64_t elements, int members) {
  const std::int64_t share = (elements + members - 1) / members;
  const std::int64_t even = share + share % 2;
  std::vector<std::int64_t> bounds;
  for (int member = 0; member < members; ++member) bounds.push_back(std::min(elements, member * even));
  bounds.push_back(elements);
  return bounds;
}

std::vector<std::int64_t> shares_by_layer(const ParameterPlaces& places, int members) {
  const std::int64_t elements = places.first_element.back();
  std::vector<std::int64_t> bounds{0};
  for (int member = 1; member < members; ++member) {
    const std::int64_t wanted = elements * member / members;
    const auto nearest = std::ranges::min_element(places.first_element, {},
                                                  [wanted](std::int64_t first) { return std::abs(first - wanted); });
    bounds.push_back(std::max(bounds.back(), *nearest));
  }
  bounds.push_back(elements);
  return bounds;
}

}}  // namespace plumb::executor
