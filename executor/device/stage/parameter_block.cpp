#include "executor/device/stage/parameter_block.h"

#include <algorithm>

#include "executor/cpu/parameters/optimizer_state.h"
#include "executor/device/layers/device_layer.h"
#include "executor/device/stage/device_update.h"
#include "kernels/cpu/half.h"

namespace plumb { inline namespace executor {
namespace {

float* allocate_floats(DeviceMachine& machine, std::int64_t elements) {
  return reinterpret_cast<float*>(machine.allocate(elements * kSingleBytes));
}

}  // namespace

ParameterBlock::ParameterBlock(const std::vector<Layer>& layers, const ParameterBlockOptions& options)
    : options_(options),
      layers_(layers),
      element_bytes_(options.half ? 2 : 4),
      places_(parameter_places(divide_layers(layers, options.tensor.ranks), options.part, options.experts.ranks)),
      shares_(places_, options.shares),
      optimizer_places_(places_, shares_.own(), options.optimizer),
      vectors_(places_),
      room_(layer_room()) {}

ElementRange ParameterBlock::range_of(std::size_t layer) const {
  const std::int64_t first = places_.first_element[layer];
  return {first, places_.first_element[layer + 1] - first};
}

/// Of all weights as they are stored, in whole words.
std::int64_t ParameterBlock::stored_bytes() const {
  return (elements() * element_bytes_ + 3) / 4 * 4;
}

std::int64_t ParameterBlock::version_bytes() const {
  const std::int64_t stored = stored_bytes();
  return options_.half ? aligned_bytes(stored) + vectors_.elements() * kSingleBytes : stored;
}

std::int64_t ParameterBlock::held_bytes() const {
  std::int64_t state = 0;  // with the room between its fields
  if (!optimizer_places_.is_on_host())
    state = optimizer_places_.block_bytes() + (options_.half ? shares_.own().count * kSingleBytes : 0);
  return weight_bytes() + gradient_bytes() + state + (has_vector_block() ? vectors_.elements() * kSingleBytes : 0) +
         (shares_.reduces_layers() ? vectors_.elements() * kSingleBytes : 0);
}

std::int64_t ParameterBlock::whole_gradient_bytes() const {
  return shares_.zero() < 2 || shares_.reduces_layers() ? 0 : elements() * kSingleBytes;
}

bool ParameterBlock::has_vector_block() const {
  return options_.half && vectors_.elements() > 0 && (shares_.zero() > 0 || optimizer_places_.has_master_on_host());
}

void ParameterBlock::settle(DeviceMachine& machine, bool capture_gradients) {
  const std::vector<float> weights = first_weights();
  const ElementRange own = shares_.own();
  const auto own_weights =
      std::span(weights).subspan(static_cast<std::size_t>(own.first), static_cast<std::size_t>(own.count));
  const bool is_whole = shares_.zero() < 3;
  const std::span<const float> held = is_whole ? std::span(weights) : own_weights;
  const auto upload = [&](float* to, std::span<const float> from) { machine.upload(to, std::as_bytes(from)); };
  if (options_.half) {
    std::vector<std::uint16_t> narrow_weights(held.size());
    narrow(narrow_weights.data(), held.data(), std::ssize(held), *options_.half);
    stored_weights_ = machine.allocate(is_whole ? stored_bytes() : std::ssize(held) * element_bytes_ + 2);
    machine.upload(stored_weights_, std::as_bytes(std::span(narrow_weights)));
    if (!optimizer_places_.has_master_on_host()) {
      master_ = allocate_floats(machine, own.count);
      upload(master_, own_weights);
    }
  } else {
    master_ = allocate_floats(machine, std::ssize(held));
    upload(master_, held);
    stored_weights_ = reinterpret_cast<std::byte*>(master_);
  }
  if (has_vector_block()) {
    std::vector<float> vectors = vectors_.packed(weights);
    if (shares_.zero() > 0) {  // as a gather leaves them
      std::vector<std::uint16_t> stored(vectors.size());
      narrow(stored.data(), vectors.data(), std::ssize(vectors), *options_.half);
      widen(vectors.data(), stored.data(), std::ssize(vectors), *options_.half);
    }
    vector_block_ = allocate_floats(machine, vectors_.elements());
    upload(vector_block_, vectors);
  }
  gradients_ = allocate_floats(machine, held_gradients());
  const std::int64_t state_bytes = optimizer_places_.block_bytes();
  if (optimizer_places_.is_on_host()) {
    state_ = machine.allocate_on_host(state_bytes);
    std::fill_n(state_, state_bytes, std::byte{0});
  } else {
    state_ = machine.allocate(state_bytes);
  }
  if (optimizer_places_.has_master_on_host())
    write_state(machine, optimizer_places_.master(), std::as_bytes(own_weights));
  restore_state(machine);
  if (shares_.reduces_layers() && vectors_.elements() > 0)
    waiting_vectors_ = allocate_floats(machine, vectors_.elements());
  if (capture_gradients) captured_ = allocate_floats(machine, options_.steps * own.count);
}

StoredWeights ParameterBlock::weights_of(std::size_t layer, const std::byte* version, std::byte* moved) const {
  const std::int64_t first = places_.first_element[layer];
  const bool has_vectors = vectors_.elements() > 0;
  const bool is_packed = has_vector_block() || (options_.half && has_vectors && version != nullptr);
  if (shares_.gathers_layers()) {
    std::byte* const words = gathered_words(moved, layer);
    const std::byte* const stored = words + (options_.half ? first % 2 * element_bytes_ : std::int64_t{0});
    const std::byte* const vectors =
        options_.half ? words - shares_.words_of(range_of(layer)).first * 4 % kDeviceTensorAlignment + room_.stored
                      : stored;
    return {.stored = stored,
            .vectors = reinterpret_cast<const float*>(vectors),
            .packed = is_packed ? &vectors_ : nullptr,
            .first_packed = is_packed ? vectors_.count_before(first) : 0};
  }
  const std::byte* const weights = version != nullptr ? version : stored_weights_;
  if (!has_vectors) return {.stored = weights + first * element_bytes_};
  const float* vectors = is_packed ? vector_block_ : master_;
  if (version != nullptr)
    vectors = reinterpret_cast<const float*>(is_packed ? version + aligned_bytes(stored_bytes()) : version);
  return {.stored = weights + first * element_bytes_,
          .vectors = is_packed ? vectors : vectors + first,
          .packed = is_packed ? &vectors_ : nullptr};
}

float* ParameterBlock::gradients_of(std::size_t layer, float* whole, std::byte* moved) const {
  const std::int64_t first = places_.first_element[layer];
  if (shares_.zero() < 2) return gradients_ + first;
  if (!shares_.reduces_layers()) return whole + first;
  return reinterpret_cast<float*>(moved + moved_gradients_ + first * kSingleBytes % kDeviceTensorAlignment);
}

void ParameterBlock::open_gradients(DeviceKernels& kernels, float* whole) const {
  if (whole_gradient_bytes() > 0) kernels.fill_zero(whole, elements());
}

void ParameterBlock::reduce(CallRecorder& recorder, float* whole, std::size_t bucket) const {
  if (shares_.reduces_layers()) return;  // passes have done so
  const bool is_share = shares_.zero() >= 2;
  const ElementRange own = shares_.own();
  float* gradients = is_share ? whole : gradients_;
  for (const DeviceExchange& exchange : shares_.reduction(bucket, gradients)) recorder.exchange(exchange);
  if (!is_share) return;
  recorder.open_piece();
  if (own.count > 0) recorder.add_gradients(gradients_, gradients_, gradients + own.first, own.count);
}

void ParameterBlock::gather(CallRecorder& recorder, std::byte* gathered) const {
  if (shares_.zero() == 0 || shares_.gathers_layers()) return;
  std::byte* weights = shares_.zero() == 3 ? gathered : stored_weights_;
  const ElementRange own = shares_.own();
  if (shares_.zero() == 3) recorder.open_piece();
  if (shares_.zero() == 3 && own.count > 0)
    recorder.copy(weights + own.first * element_bytes_, stored_weights_, own.count * element_bytes_);
  for (const DeviceExchange& exchange : shares_.gather(weights)) recorder.exchange(exchange);
  if (!options_.half) return;
  float* vectors =
      shares_.zero() == 3 ? reinterpret_cast<float*>(gathered + aligned_bytes(stored_bytes())) : vector_block_;
  vectors_.widen(recorder, vectors, weights, element_bytes_);
}

/// Copies divide the block as ZeRO does; what other tensor ranks have too is the first one's.
void ParameterBlock::find_measured(ElementRange others) {
  std::vector<ElementRange> left_out = replicated_elements(places_, layers_, options_.tensor, options_.experts);
  if (others.count > 0) left_out.push_back(others);
  std::ranges::sort(left_out, {}, &ElementRange::first);
  const ElementRange own = shares_.spoken_for();
  std::int64_t begin = own.first;
  const std::int64_t end = own.first + own.count;
  const auto measure_up_to = [&](std::int64_t to) {
    if (std::min(to, end) > begin) measured_.push_back({begin, std::min(to, end) - begin});
  };
  for (const ElementRange& other : left_out) {
    measure_up_to(other.first);
    begin = std::max(begin, other.first + other.count);
  }
  measure_up_to(end);
}

void ParameterBlock::measure_gradients(DeviceKernels& kernels, float* partials, float limit) const {
  const std::int64_t first = shares_.zero() < 2 ? 0 : shares_.own().first;
  for (const ElementRange& range : measured_) {
    kernels.sum_of_squares(partials, gradients_ + (range.first - first), range.count, limit);
    partials += kGradientPieces;
  }
}

void ParameterBlock::keep_version(DeviceKernels& kernels, std::byte* replaced) const {
  kernels.copy(replaced, stored_weights_, elements() * element_bytes_);
  auto* const packed = reinterpret_cast<float*>(replaced + aligned_bytes(stored_bytes()));
  if (has_vector_block())
    kernels.copy(packed, vector_block_, vectors_.elements() * kSingleBytes);
  else if (options_.half)
    vectors_.pack(kernels, packed, master_);
}

float* ParameterBlock::own_master() const {
  if (optimizer_places_.has_master_on_host()) return nullptr;
  return options_.half || shares_.zero() == 3 ? master_ : master_ + shares_.own().first;
}

float* ParameterBlock::own_gradients() const {
  return shares_.zero() < 2 ? gradients_ + shares_.own().first : gradients_;
}

}}  // namespace plumb::executor
