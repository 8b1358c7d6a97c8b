// A block's part in ZeRO 2 and 3 layer by layer (device_stage_layers.cpp): a layer's weights and gradients in the room
// that all passes have for them.

#include <algorithm>

#include "executor/cpu/parameters/optimizer_state.h"
#include "executor/device/layers/device_layer.h"
#include "executor/device/stage/parameter_block.h"

namespace plumb { inline namespace executor {
/// Layers lie in them as in the stage's block: what is aligned there is aligned here.
ParameterBlock::LayerRoom ParameterBlock::layer_room() const {
  LayerRoom room;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const ElementRange range = range_of(layer);
    if (range.count == 0) continue;
    const std::int64_t words = shares_.words_of(range).count;
    room.stored = std::max(room.stored, aligned_bytes(words * 4) + kDeviceTensorAlignment);
    room.gradients = std::max(room.gradients, aligned_bytes(range.count * kSingleBytes) + kDeviceTensorAlignment);
    const std::int64_t vectors = vectors_.count_before(range.first + range.count) - vectors_.count_before(range.first);
    if (options_.half) room.vectors = std::max(room.vectors, aligned_bytes(vectors * kSingleBytes));
  }
  if (!shares_.gathers_layers()) room.stored = room.vectors = 0;
  if (!shares_.reduces_layers()) room.gradients = 0;
  return room;
}

void ParameterBlock::place_moved(std::int64_t weights, std::int64_t gradients) {
  moved_weights_ = weights;
  moved_gradients_ = gradients;
}

/// The word in which the layer begins.
std::byte* ParameterBlock::gathered_words(std::byte* moved, std::size_t layer) const {
  const std::int64_t place = static_cast<std::int64_t>(layer % 2) * (room_.stored + room_.vectors);
  return moved + moved_weights_ + place + shares_.words_of(range_of(layer)).first * 4 % kDeviceTensorAlignment;
}

/// Of the block.
ElementRange ParameterBlock::own_in(ElementRange range) const {
  const ElementRange own = shares_.own();
  const std::int64_t first = std::max(range.first, own.first);
  return {first, std::max<std::int64_t>(0, std::min(range.first + range.count, own.first + own.count) - first)};
}

void ParameterBlock::gather_layer(CallRecorder& recorder, std::byte* moved, std::size_t layer) const {
  const ElementRange range = range_of(layer), words = shares_.words_of(range);
  if (!shares_.gathers_layers() || range.count == 0) return;
  const std::int64_t per_word = options_.half ? 2 : 1;
  const ElementRange own = own_in({words.first * per_word, words.count * per_word});
  std::byte* const gathered = gathered_words(moved, layer);
  recorder.open_piece();
  if (own.count > 0)
    recorder.copy(gathered + (own.first - words.first * per_word) * element_bytes_,
                  stored_weights_ + (own.first - shares_.own().first) * element_bytes_, own.count * element_bytes_);
  for (const DeviceExchange& exchange : shares_.layer_gather(range, gathered)) recorder.exchange(exchange);
}

void ParameterBlock::widen_layer(DeviceKernels& kernels, std::byte* moved, std::size_t layer) const {
  if (!options_.half || !shares_.gathers_layers() || range_of(layer).count == 0) return;
  const ElementRange range = range_of(layer);
  const std::int64_t place = static_cast<std::int64_t>(layer % 2) * (room_.stored + room_.vectors);
  vectors_.widen_within(kernels, range, reinterpret_cast<float*>(moved + moved_weights_ + place + room_.stored),
                        gathered_words(moved, layer) + range.first % 2 * element_bytes_, element_bytes_);
}

void ParameterBlock::open_layer(DeviceKernels& kernels, std::byte* moved, std::size_t layer) const {
  if (shares_.reduces_layers() && range_of(layer).count > 0)
    kernels.fill_zero(gradients_of(layer, nullptr, moved), range_of(layer).count);
}

void ParameterBlock::leave_vectors(DeviceKernels& kernels, std::byte* moved, std::size_t layer) const {
  if (shares_.reduces_layers())
    vectors_.add_within(kernels, range_of(layer), waiting_vectors_, gradients_of(layer, nullptr, moved));
}

void ParameterBlock::take_vectors(DeviceKernels& kernels, std::byte* moved, std::size_t layer) const {
  if (shares_.reduces_layers())
    vectors_.take_within(kernels, range_of(layer), gradients_of(layer, nullptr, moved), waiting_vectors_);
}

void ParameterBlock::exchange_gradients(CallRecorder& recorder, std::byte* moved, std::size_t layer) const {
  if (!shares_.reduces_layers()) return;
  for (const DeviceExchange& exchange : shares_.layer_reduction(range_of(layer), gradients_of(layer, nullptr, moved)))
    recorder.exchange(exchange);
}

void ParameterBlock::add_share(DeviceKernels& kernels, std::byte* moved, std::size_t layer) const {
  const ElementRange range = range_of(layer), own = own_in(range);
  if (!shares_.reduces_layers() || own.count == 0) return;
  float* const sum = gradients_ + (own.first - shares_.own().first);
  kernels.add_gradients(sum, sum, gradients_of(layer, nullptr, moved) + (own.first - range.first), own.count);
}

}}  // namespace plumb::executor
