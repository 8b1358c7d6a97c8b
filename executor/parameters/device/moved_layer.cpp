#include "executor/parameters/device/moved_layer.h"

#include <algorithm>

#include "executor/layers/device/device_layer.h"
#include "executor/parameters/optimizer_state.h"

namespace plumb { inline namespace executor {

LayerRoom layer_room(const BlockLayout& layout) {
  LayerRoom room;
  const PackedVectors& packed = layout.vectors();
  for (std::size_t layer = 0; layer < layout.layers().size(); ++layer) {
    const ElementRange range = layout.range_of(layer);
    if (range.count == 0) continue;
    const std::int64_t words = layout.shares().words_of(range).count;
    room.stored = std::max(room.stored, aligned_bytes(words * 4) + kDeviceTensorAlignment);
    room.gradients = std::max(room.gradients, aligned_bytes(range.count * kSingleBytes) + kDeviceTensorAlignment);
    const std::int64_t vectors = packed.count_before(range.first + range.count) - packed.count_before(range.first);
    if (layout.is_half()) room.vectors = std::max(room.vectors, aligned_bytes(vectors * kSingleBytes));
  }
  if (!layout.shares().gathers_layers()) room.stored = room.vectors = 0;
  if (!layout.shares().reduces_layers()) room.gradients = 0;
  return room;
}

MovedLayer::MovedLayer(const BlockLayout& layout, const BlockMemory& memory, const LayerRoom& room, std::byte* moved,
                       std::size_t layer)
    : layout_(layout),
      memory_(memory),
      room_(room),
      moved_(moved),
      layer_(layer),
      range_(layout.range_of(layer)),
      word_range_(layout.shares().words_of(range_)) {}

/// Address of the layer's place: layers by turns have one of two.
std::byte* MovedLayer::place() const {
  return moved_ + room_.first_weights + static_cast<std::int64_t>(layer_ % 2) * (room_.stored + room_.vectors);
}

/// Address of the word in which the layer begins.
std::byte* MovedLayer::words() const {
  return place() + word_range_.first * 4 % kDeviceTensorAlignment;
}

const std::byte* MovedLayer::stored() const {
  return words() + (layout_.is_half() ? range_.first % 2 * layout_.element_bytes() : std::int64_t{0});
}

const float* MovedLayer::vectors() const {
  return reinterpret_cast<const float*>(layout_.is_half() ? place() + room_.stored : stored());
}

float* MovedLayer::gradients() const {
  return reinterpret_cast<float*>(moved_ + room_.first_gradients +
                                  range_.first * kSingleBytes % kDeviceTensorAlignment);
}

void MovedLayer::gather(CallRecorder& recorder) const {
  if (!layout_.shares().gathers_layers() || range_.count == 0) return;
  const std::int64_t per_word = layout_.is_half() ? 2 : 1, element_bytes = layout_.element_bytes();
  const ElementRange own = layout_.own_in({word_range_.first * per_word, word_range_.count * per_word});
  recorder.open_piece();
  if (own.count > 0)
    recorder.copy(words() + (own.first - word_range_.first * per_word) * element_bytes,
                  memory_.stored_weights + (own.first - layout_.own().first) * element_bytes,
                  own.count * element_bytes);
  for (const DeviceExchange& exchange : layout_.shares().layer_gather(range_, words())) recorder.exchange(exchange);
}

void MovedLayer::widen(DeviceKernels& kernels) const {
  if (!layout_.is_half() || !layout_.shares().gathers_layers() || range_.count == 0) return;
  layout_.vectors().widen_within(kernels, range_, reinterpret_cast<float*>(place() + room_.stored), stored(),
                                 layout_.element_bytes());
}

void MovedLayer::open(DeviceKernels& kernels) const {
  if (layout_.shares().reduces_layers() && range_.count > 0) kernels.fill_zero(gradients(), range_.count);
}

void MovedLayer::leave_vectors(DeviceKernels& kernels) const {
  if (layout_.shares().reduces_layers())
    layout_.vectors().add_within(kernels, range_, memory_.waiting_vectors, gradients());
}

void MovedLayer::take_vectors(DeviceKernels& kernels) const {
  if (layout_.shares().reduces_layers())
    layout_.vectors().take_within(kernels, range_, gradients(), memory_.waiting_vectors);
}

void MovedLayer::reduce(CallRecorder& recorder) const {
  if (!layout_.shares().reduces_layers()) return;
  for (const DeviceExchange& exchange : layout_.shares().layer_reduction(range_, gradients()))
    recorder.exchange(exchange);
}

void MovedLayer::add_share(DeviceKernels& kernels) const {
  const ElementRange own = layout_.own_in(range_);
  if (!layout_.shares().reduces_layers() || own.count == 0) return;
  float* const sum = memory_.gradients + (own.first - layout_.own().first);
  kernels.add_gradients(sum, sum, gradients() + (own.first - range_.first), own.count);
}

}}  // namespace plumb::executor
