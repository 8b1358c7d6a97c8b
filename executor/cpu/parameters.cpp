#include "executor/cpu/parameters.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "executor/cpu/initial_weights.h"

namespace plumb {

ParameterPlaces parameter_places(const std::vector<Layer>& layers) {
  ParameterPlaces places;
  std::int64_t first = 0;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    places.first_element.push_back(first);
    for (ParameterTensor& tensor : layer_parameters(layers[layer])) {
      const std::int64_t count = element_count(tensor);
      places.parameters.push_back({.layer = layer, .tensor = std::move(tensor), .first = first, .count = count});
      first += count;
    }
  }
  places.first_element.push_back(first);
  return places;
}

CpuParameters::CpuParameters(const CpuParameterOptions& options, TensorPool& pool)
    : options_(options), pool_(pool), places_(parameter_places(options.layers)) {
  const std::int64_t elements = places_.first_element.back();
  versions_.push_back({0, pool_.take(elements)});
  for (std::size_t i = 0; i < options_.layers.size(); ++i) {
    const std::int64_t first = places_.first_element[i], count = places_.first_element[i + 1] - first;
    fill_initial_weights(newest_weights().subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)),
                         options_.layers[i], options_.first_layer + static_cast<int>(i), options_.seed);
  }
  gradients_ = pool_.take_zeros(elements);
  first_moments_ = pool_.take_zeros(elements);
  second_moments_ = pool_.take_zeros(elements);
}

void CpuParameters::begin(std::vector<int> uses) {
  versions_.erase(versions_.begin(), versions_.end() - 1);
  versions_.back().number = 0;
  uses_ = std::move(uses);
}

bool CpuParameters::is_in_use(int version) const {
  return static_cast<std::size_t>(version) < uses_.size() && uses_[static_cast<std::size_t>(version)] > 0;
}

void CpuParameters::release(int version) {
  --uses_[static_cast<std::size_t>(version)];
  if (is_in_use(version) || version == versions_.back().number) return;
  std::erase_if(versions_, [&](const Version& held) { return held.number == version; });
}

const float* CpuParameters::weights(int version, std::size_t layer) const {
  const auto held = std::ranges::find(versions_, version, &Version::number);
  assert(held != versions_.end());  // weight_versions() refuses schedules in which it is not there
  return held->weights.data() + places_.first_element[layer];
}

void CpuParameters::step(const CpuKernelSet& kernels) {
  const int newest = versions_.back().number;
  if (is_in_use(newest)) versions_.push_back({newest, pool_.take_copy(versions_.back().weights)});
  versions_.back().number += 1;
  ++updates_;
  for (const PlacedParameter& parameter : places_.parameters) {
    AdamW optimizer = options_.optimizer;
    if (parameter.tensor.shape.size() == 1) optimizer.weight_decay = 0;
    kernels.adamw_update(versions_.back().weights.data() + parameter.first, gradients_.data() + parameter.first,
                         first_moments_.data() + parameter.first, second_moments_.data() + parameter.first,
                         parameter.count, optimizer, updates_);
  }
}

LayerValues CpuParameters::split_by_parameter(const Tensor& block) const {
  LayerValues values(options_.layers.size());
  for (const PlacedParameter& parameter : places_.parameters) {
    const float* first = block.data() + parameter.first;
    values[parameter.layer].emplace_back(first, first + parameter.count);
  }
  return values;
}

}  // namespace plumb
