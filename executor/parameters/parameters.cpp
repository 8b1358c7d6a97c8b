#include "executor/parameters/parameters.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "executor/parameters/initial_weights.h"
#include "executor/parameters/optimizer_state.h"
#include "kernels/cpu/half.h"

namespace plumb { inline namespace executor {
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
      places_(parameter_places(divide_layers(options.layers, options.tensor.ranks, options.experts.tensor.ranks),
                               options.part, options.experts.ranks)),
      own_(options.zero > 0 ? options.shares.own() : ElementRange{0, elements()}),
      pieces_(pieces_in(places_, own_)),
      uncounted_(uncounted_elements(places_, options.layers, options.tensor, options.experts)),
      buckets_(options.buckets) {
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
  if (buckets_.empty()) buckets_.push_back({0, elements()});
  for (const ElementRange& bucket : buckets_) bucket_bounds_.push_back(clipped_bounds(options_.shares.bounds, bucket));
  for (const std::int64_t bound : options_.shares.bounds)
    word_bounds_.push_back(options_.half ? (bound + 1) / 2 : bound);
  if (options_.layerwise != nullptr && options_.zero >= 2) {
    layer_gradients_.resize(options_.layers.size());
    layer_moves_.emplace(*options_.layerwise, word_bounds_, options_.shard_by, pool_);
    gradient_moves_.emplace(*options_.layerwise, options_.shares.bounds, options_.shard_by, pool_);
  }
  store_weights(initial_weights());
}

/// Takes room for weights as they are stored; 16-bit weights fill whole words.
Tensor CpuParameters::take_weights(std::int64_t elements) {
  return pool_.take(options_.half ? (elements + 1) / 2 : elements);
}

/// Returns the initial weights of all the stage's elements.
std::vector<float> CpuParameters::initial_weights() const {
  std::vector<float> whole(static_cast<std::size_t>(elements()));
  for (std::size_t i = 0; i < options_.layers.size(); ++i) {
    const std::int64_t first = places_.first_element[i];
    fill_initial_weights(part(whole, {first, places_.first_element[i + 1] - first}), options_.layers[i],
                         options_.first_layer + static_cast<int>(i), options_.seed, options_.tensor, options_.part,
                         options_.experts);
  }
  return whole;
}

void CpuParameters::store_weights(std::span<const float> whole) {
  const std::span<const float> own =
      whole.subspan(static_cast<std::size_t>(own_.first), static_cast<std::size_t>(own_.count));
  if (options_.half) std::ranges::copy(own, master_.data());
  const std::span<const float> stored = is_held_whole() ? whole : own;
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

/// Returns the layer's range of the weights' storage, in words; in 16 bits its ends may share words with its
/// neighbours.
ElementRange CpuParameters::words_of(std::size_t layer) const {
  const std::int64_t first = places_.first_element[layer], end = places_.first_element[layer + 1];
  if (!options_.half) return {first, end - first};
  return {first / 2, (end + 1) / 2 - first / 2};
}

WidenedWeights CpuParameters::weights(int version, std::size_t layer, std::optional<std::size_t> next) {
  if (gathers_layers()) {
    const ElementRange words = words_of(layer);
    if (words.count == 0) return {};
    const bool has_next = next && words_of(*next).count > 0;
    Tensor whole =
        layer_moves_->gather(words, has_next ? std::optional(words_of(*next)) : std::nullopt, weight_share_.values());
    const std::int64_t first = places_.first_element[layer], count = places_.first_element[layer + 1] - first;
    if (!options_.half) {
      const float* data = whole.data();
      return {.widened = std::move(whole), .data = data};
    }
    WidenedWeights result{.widened = pool_.take(count)};
    widen(result.widened.data(), whole.halves() + (first - 2 * words.first), count, *options_.half);
    result.data = result.widened.data();
    return result;
  }
  const auto held = std::ranges::find(versions_, version, &Version::number);
  assert(held != versions_.end());  // weight_versions() refuses schedules in which the version is missing
  const std::int64_t first = places_.first_element[layer], count = places_.first_element[layer + 1] - first;
  if (!options_.half) return {.data = held->weights.data() + first};
  WidenedWeights result{.widened = pool_.take(count)};
  widen(result.widened.data(), held->weights.halves() + first, count, *options_.half);
  result.data = result.widened.data();
  return result;
}

void CpuParameters::complete(std::size_t layer) {
  if (!gradient_moves_ || layer_gradients_[layer].empty()) return;
  const std::int64_t first = places_.first_element[layer];
  gradient_moves_->reduce({first, places_.first_element[layer + 1] - first}, layer_gradients_[layer].values(),
                          gradient_share_.values());
  layer_gradients_[layer] = {};
}

float* CpuParameters::gradients(std::size_t layer) {
  if (gradient_moves_) {
    Tensor& own = layer_gradients_[layer];
    if (own.empty()) own = pool_.take_zeros(places_.first_element[layer + 1] - places_.first_element[layer]);
    return own.data();
  }
  if (gradients_.empty()) gradients_ = pool_.take_zeros(elements());
  return gradients_.data() + places_.first_element[layer];
}

const float* CpuParameters::own_gradients() const {
  return options_.zero < 2 ? gradients_.data() + own_.first : gradient_share_.data();
}

GradientMeasure CpuParameters::measure(ElementRange excluded) const {
  const ElementRange range = options_.shares.bounds.empty() ? own_ : options_.shares.own();
  const float* gradients = own_gradients() + (range.first - own_.first);
  GradientMeasure measure;
  const auto is_in = [](std::int64_t element, ElementRange in) {
    return element >= in.first && element < in.first + in.count;
  };
  auto uncounted = uncounted_.begin();
  for (std::int64_t i = 0; i < range.count; ++i) {
    const std::int64_t element = range.first + i;
    while (uncounted != uncounted_.end() && uncounted->first + uncounted->count <= element) ++uncounted;
    if (uncounted != uncounted_.end() && is_in(element, *uncounted)) continue;
    const auto value = static_cast<double>(gradients[i]);
    if (options_.half == HalfFormat::kFp16 && !(std::abs(value) <= static_cast<double>(kLargestFp16)))
      measure.overflows = true;
    if (!is_in(element, excluded)) measure.square_sum += value * value;
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
  Tensor gradients_there, weights_there;  // copies in the state's memory, if that is another pool
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

std::vector<Collective> CpuParameters::start_reduction(std::size_t bucket) {
  if (options_.zero < 2) {
    const std::span<float> values = part(gradients_.values(), buckets_[bucket]);
    if (options_.zero == 0) return {all_reduce(values)};
    return reduce_shares(values, bucket_bounds_[bucket], options_.shard_by);
  }
  if (gradient_moves_) return {};  // reduced layer by layer
  gradients(0);
  reducing_ = std::move(gradients_);
  return reduce_shares(reducing_.values(), options_.shares.bounds, options_.shard_by);
}

void CpuParameters::finish_reduction() {
  if (reducing_.empty()) return;
  const float* sum = reducing_.data() + own_.first;
  float* total = gradient_share_.data();
  for (std::int64_t i = 0; i < own_.count; ++i) total[i] += sum[i];
  reducing_ = {};
}

Collective CpuParameters::sum_of_shares() {
  return all_reduce(options_.zero < 2 ? part(gradients_.values(), own_) : gradient_share_.values());
}

std::vector<Collective> CpuParameters::start_gather() {
  if (gathers_layers()) return {};
  Tensor& whole = versions_.back().weights;
  if (!is_held_whole()) {
    whole = take_weights(elements());
    std::ranges::copy(weight_share_.values(),
                      whole.data() + word_bounds_[static_cast<std::size_t>(options_.shares.member)]);
  }
  return gather_shares(whole.values(), word_bounds_, options_.shard_by);
}

void CpuParameters::drop_gathered() {
  if (!is_held_whole()) versions_.back().weights = {};
}

std::vector<Collective> CpuParameters::start_range(std::size_t slot, ElementRange range) {
  OpenRange& open = open_ranges_[slot];
  open.range = range;
  if (options_.zero < 2) {
    open.values = part(gradients_.values(), range);
    if (options_.zero == 0) return {};
  } else {
    open.copy = pool_.take(range.count);
    open.values = open.copy.values();
    const ElementRange own = own_in(range);
    if (own.count > 0)
      std::copy_n(gradient_share_.data() + (own.first - own_.first), own.count,
                  open.values.data() + (own.first - range.first));
  }
  open.bounds = clipped_bounds(options_.shares.bounds, range);
  return gather_shares(open.values, open.bounds, options_.shard_by);
}

void CpuParameters::finish_range(std::size_t slot) {
  OpenRange& open = open_ranges_[slot];
  const ElementRange own = own_in(open.range);
  if (!open.copy.empty() && own.count > 0)
    std::copy_n(open.values.data() + (own.first - open.range.first), own.count,
                gradient_share_.data() + (own.first - own_.first));
  open.copy = {};
}

/// Returns the own elements in a range, as a range of the block.
ElementRange CpuParameters::own_in(ElementRange range) const {
  const std::int64_t first = std::max(own_.first, range.first);
  const std::int64_t end = std::min(own_.first + own_.count, range.first + range.count);
  return {first, std::max<std::int64_t>(0, end - first)};
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

/// Calls `visit` for each run of the pieces' elements that is in one of the whole model's parameters, which padding is
/// not. Parameters that every tensor rank has are visited on all tensor ranks, or on the first one alone.
template <class Visit>
void CpuParameters::for_each_run(const std::vector<ParameterPiece>& pieces, Replicated replicated, Visit visit) const {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const ParameterPiece& piece = pieces[i];
    const PlacedParameter& parameter = places_.parameters[piece.parameter];
    const TensorSeat& sharers = parameter.tensor.expert ? options_.experts.tensor : options_.tensor;
    const bool is_replica = sharers.rank > 0 && parameter.tensor.split_dimension < 0;
    if (is_replica && replicated == Replicated::kOnFirstTensorRank) continue;
    for (const ElementRun& run :
         element_runs(options_.layers[parameter.layer], parameter.index, options_.tensor, options_.experts)) {
      if (run.is_replica && replicated == Replicated::kOnFirstTensorRank) continue;
      const ElementRun own = within(run, piece.first_in_tensor, piece.count);
      if (own.count > 0)
        visit(WholeRun{.piece = i,
                       .first_in_piece = own.local - piece.first_in_tensor,
                       .layer = static_cast<std::size_t>(options_.first_layer) + parameter.layer,
                       .index = parameter.index,
                       .whole = own.whole,
                       .first_in_own = piece.first_in_range + (own.local - piece.first_in_tensor),
                       .count = own.count});
    }
  }
}

const float* CpuParameters::own_weights() const {
  return options_.half ? master_.data() : own_block().data() + first_in_own_block();
}

void CpuParameters::copy_own(LayerValues& model, const float* own) const {
  for_each_run(pieces_, Replicated::kOnFirstTensorRank, [&](const WholeRun& run) {
    std::copy_n(own + run.first_in_own, run.count, model[run.layer][run.index].data() + run.whole);
  });
}

void CpuParameters::save(TrainingState& state) const {
  const bool by_element = is_elementwise(options_.optimizer);
  const float* weights = own_weights();
  for_each_run(pieces_, Replicated::kOnFirstTensorRank, [&](const WholeRun& run) {
    SavedParameter& parameter = state.parameters[run.layer][run.index];
    std::copy_n(weights + run.first_in_own, run.count, parameter.weights.data() + run.whole);
    for (std::size_t field = 0; field < parameter.fields.size(); ++field) {
      const std::span<const std::byte> bytes = state_[run.piece][field].bytes();
      std::vector<std::byte>& whole = parameter.fields[field].bytes;
      if (by_element)
        std::copy_n(bytes.data() + kSingleBytes * run.first_in_piece, kSingleBytes * run.count,
                    whole.data() + kSingleBytes * run.whole);
      else
        std::ranges::copy(bytes, whole.begin());
    }
  });
}

void CpuParameters::restore(const TrainingState& state) {
  std::vector<float> whole = initial_weights();  // the padding of a vocabulary stays as it began
  for_each_run(pieces_in(places_, {0, elements()}), Replicated::kAll, [&](const WholeRun& run) {
    std::copy_n(state.parameters[run.layer][run.index].weights.data() + run.whole, run.count,
                whole.data() + run.first_in_own);
  });
  store_weights(whole);
  const bool by_element = is_elementwise(options_.optimizer);
  for_each_run(pieces_, Replicated::kAll, [&](const WholeRun& run) {
    const SavedParameter& parameter = state.parameters[run.layer][run.index];
    for (std::size_t field = 0; field < parameter.fields.size(); ++field) {
      const std::span<std::byte> bytes = state_[run.piece][field].bytes();
      const std::vector<std::byte>& saved = parameter.fields[field].bytes;
      if (by_element)
        std::copy_n(saved.data() + kSingleBytes * run.whole, kSingleBytes * run.count,
                    bytes.data() + kSingleBytes * run.first_in_piece);
      else
        std::ranges::copy(saved, bytes.begin());
    }
  });
  updates_ = state.updates;
}

LayerValues CpuParameters::values_of_share(const float* own) const {
  LayerValues values(options_.layers.size());
  for (const PlacedParameter& parameter : places_.parameters) {
    values[parameter.layer].resize(parameter.index + 1);
    values[parameter.layer].back().resize(static_cast<std::size_t>(parameter.count));
  }
  for (const ParameterPiece& piece : pieces_) {
    const PlacedParameter& parameter = places_.parameters[piece.parameter];
    std::copy_n(own + piece.first_in_range, piece.count,
                values[parameter.layer][parameter.index].data() + piece.first_in_tensor);
  }
  return values;
}

}}  // namespace plumb::executor
