#include "executor/cpu/parameters.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "executor/cpu/initial_weights.h"

namespace plumb {
namespace {

std::span<float> part(std::span<float> values, ElementRange range) {
  return values.subspan(static_cast<std::size_t>(range.first), static_cast<std::size_t>(range.count));
}

std::int64_t bytes_in(const Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.bytes().size());
}

}  // namespace

CpuParameters::CpuParameters(const CpuParameterOptions& options, TensorPool& pool)
    : options_(options),
      pool_(pool),
      state_pool_(options.state_pool == nullptr ? pool : *options.state_pool),
      places_(parameter_places(divide_layers(options.layers, options.tensor.ranks))),
      own_(options.zero > 0 ? options.shares.own() : ElementRange{0, elements()}),
      pieces_(pieces_in(places_, own_)) {
  versions_.emplace_back();
  if (is_held_whole())
    versions_.back().weights = take_weights(elements());
  else
    weight_share_ = take_weights(own_.count);
  if (options_.zero < 2)
    gradients_ = pool_.take_zeros(elements());
  else
    gradient_share_ = pool_.take_zeros(own_.count);
  if (options_.half) master_ = state_pool_.take(own_.count);
  for (const ParameterPiece& piece : pieces_)
    state_.push_back(
        fresh_state(options_.optimizer, places_.parameters[piece.parameter].tensor, piece.count, state_pool_));
  set_initial_weights();
}

/// Room for weights as they are stored. 16-bit ones fill whole words.
Tensor CpuParameters::take_weights(std::int64_t elements) {
  return pool_.take(options_.half ? (elements + 1) / 2 : elements);
}

void CpuParameters::set_initial_weights() {
  std::vector<float> whole(static_cast<std::size_t>(elements()));
  for (std::size_t i = 0; i < options_.layers.size(); ++i) {
    const std::int64_t first = places_.first_element[i];
    fill_initial_weights(part(whole, {first, places_.first_element[i + 1] - first}), options_.layers[i],
                         options_.first_layer + static_cast<int>(i), options_.seed, options_.tensor);
  }
  const std::span<float> own = part(whole, own_);
  if (options_.half) std::ranges::copy(own, master_.data());
  const std::span<float> stored = is_held_whole() ? std::span(whole) : own;
  if (options_.half)
    narrow(own_block().halves(), stored.data(), static_cast<std::int64_t>(stored.size()), *options_.half);
  else
    std::ranges::copy(stored, own_block().data());
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

LayerWeights CpuParameters::weights(int version, std::size_t layer) const {
  const auto held = std::ranges::find(versions_, version, &Version::number);
  assert(held != versions_.end());  // weight_versions() refuses schedules in which it is not there
  const std::int64_t first = places_.first_element[layer], count = places_.first_element[layer + 1] - first;
  if (!options_.half) return {.data = held->weights.data() + first};
  LayerWeights result{.widened = pool_.take(count)};
  widen(result.widened.data(), held->weights.halves() + first, count, *options_.half);
  result.data = result.widened.data();
  return result;
}

float* CpuParameters::gradients(std::size_t layer) {
  if (gradients_.empty()) gradients_ = pool_.take_zeros(elements());
  return gradients_.data() + places_.first_element[layer];
}

const float* CpuParameters::own_gradients() const {
  return options_.zero < 2 ? gradients_.data() + own_.first : gradient_share_.data();
}

GradientMeasure CpuParameters::measure(ElementRange excluded) const {
  const ElementRange range = options_.shares.bounds.empty() ? own_ : options_.shares.own();
  const float* gradients = own_gradients();
  GradientMeasure measure;
  for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
    const auto value = static_cast<double>(gradients[i - own_.first]);
    if (options_.half == HalfFormat::kFp16 && !(std::abs(value) <= static_cast<double>(kLargestFp16)))
      measure.overflows = true;
    if (i < excluded.first || i >= excluded.first + excluded.count) measure.square_sum += value * value;
  }
  return measure;
}

void CpuParameters::scale_gradients(float factor) {
  if (factor == 1.0F) return;
  Tensor& block = options_.zero < 2 ? gradients_ : gradient_share_;
  for (float& value : block.values()) value *= factor;
}

void CpuParameters::step(const CpuKernelSet& kernels, bool skip) {
  const int newest = versions_.back().number;
  if (is_in_use(newest)) versions_.push_back({newest, pool_.take_copy(versions_.back().weights)});
  versions_.back().number += 1;
  if (!skip) update(kernels);
  std::ranges::fill(gradients_.values(), 0.0F);
  std::ranges::fill(gradient_share_.values(), 0.0F);
}

void CpuParameters::update(const CpuKernelSet& kernels) {
  ++updates_;
  Tensor& block = own_block();
  const std::int64_t first = first_in_own_block();
  float* gradients = (options_.zero < 2 ? gradients_.data() + own_.first : gradient_share_.data());
  float* weights = options_.half ? master_.data() : block.data() + first;
  Tensor gradients_there, weights_there;  // where the state lives, if elsewhere
  if (&state_pool_ != &pool_) {
    gradients_there = state_pool_.take(own_.count);
    std::copy_n(gradients, own_.count, gradients_there.data());
    gradients = gradients_there.data();
    if (!options_.half) {
      weights_there = state_pool_.take(own_.count);
      std::copy_n(weights, own_.count, weights_there.data());
      weights = weights_there.data();
    }
  }
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    update_parameter(kernels, options_.optimizer,
                     {.tensor = places_.parameters[pieces_[i].parameter].tensor,
                      .weights = weights + pieces_[i].first_in_range,
                      .gradients = gradients + pieces_[i].first_in_range,
                      .elements = pieces_[i].count,
                      .state = state_[i]},
                     updates_);
  if (options_.half)
    narrow(block.halves() + first, master_.data(), own_.count, *options_.half);
  else if (!weights_there.empty())
    std::copy_n(weights, own_.count, block.data() + first);
}

ParameterBytes CpuParameters::held_bytes() const {
  ParameterBytes bytes{.weights = bytes_in(weight_share_),
                       .gradients = bytes_in(gradients_) + bytes_in(gradient_share_),
                       .optimizer = bytes_in(master_)};
  for (const Version& version : versions_) bytes.weights += bytes_in(version.weights);
  for (const std::vector<Tensor>& fields : state_)
    for (const Tensor& field : fields) bytes.optimizer += bytes_in(field);
  return bytes;
}

LayerValues CpuParameters::room_for_values() const {
  LayerValues values(options_.layers.size());
  for (const PlacedParameter& parameter : places_.parameters)
    values[parameter.layer].emplace_back(static_cast<std::size_t>(parameter.count));
  return values;
}

void CpuParameters::copy_own(LayerValues& values, const float* own) const {
  for (const ParameterPiece& piece : pieces_) {
    const PlacedParameter& parameter = places_.parameters[piece.parameter];
    std::copy_n(own + piece.first_in_range, piece.count,
                values[parameter.layer][parameter.index].data() + piece.first_in_tensor);
  }
}

void CpuParameters::copy_gradients(LayerValues& values) const {
  copy_own(values, own_gradients());
}

void CpuParameters::copy_weights(LayerValues& values) const {
  copy_own(values, options_.half ? master_.data() : own_block().data() + first_in_own_block());
}

LayerValues CpuParameters::gradient_values() const {
  LayerValues values = room_for_values();
  copy_gradients(values);
  return values;
}

LayerValues CpuParameters::weight_values() const {
  LayerValues values = room_for_values();
  copy_weights(values);
  return values;
}

}  // namespace plumb
