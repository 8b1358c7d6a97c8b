// ZeRO 2 and 3 layer by layer (executor/cpu/layer_moves.h): a pass gathers a layer's weights beside the compute of the
// one before, and reduces a layer's gradients when they are complete. Two layers' weights and one's gradients stand at
// once, in front of the pass's workspace. What copies exchange is on the reduce stream, in the order of the list of
// executor/nccl; a pass may end before its last reduction has, which REDUCE_GRAD then stands behind.

#include <algorithm>

#include "executor/device/stage/device_stage.h"

namespace plumb {

ElementRange DeviceStage::range_of(std::size_t layer) const {
  const std::int64_t first = places_.first_element[layer];
  return {first, places_.first_element[layer + 1] - first};
}

/// Layers lie in them as in the stage's block: what is aligned there is aligned here.
DeviceStage::LayerRoom DeviceStage::layer_room() const {
  LayerRoom room;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const ElementRange range = range_of(layer);
    const std::int64_t words = shares_.words_of(range).count;
    room.stored = std::max(room.stored, aligned_bytes(words * 4) + kDeviceTensorAlignment);
    room.gradients =
        std::max(room.gradients, aligned_bytes(range.count * std::int64_t{sizeof(float)}) + kDeviceTensorAlignment);
    const std::int64_t vectors = vectors_.count_before(range.first + range.count) - vectors_.count_before(range.first);
    if (options_.half) room.vectors = std::max(room.vectors, aligned_bytes(vectors * std::int64_t{sizeof(float)}));
  }
  if (!shares_.gathers_layers()) room.stored = room.vectors = 0;
  if (!shares_.reduces_layers()) room.gradients = 0;
  return room;
}

std::int64_t DeviceStage::moved_bytes(bool is_backward) const {
  return 2 * (layer_room_.stored + layer_room_.vectors) + (is_backward ? layer_room_.gradients : 0);
}

/// The word in which the layer begins.
std::byte* DeviceStage::gathered_words(const DevicePass& pass, std::size_t layer) const {
  const std::int64_t place = static_cast<std::int64_t>(layer % 2) * (layer_room_.stored + layer_room_.vectors);
  return pass.moved + place + shares_.words_of(range_of(layer)).first * 4 % kDeviceTensorAlignment;
}

DeviceStage::GatheredLayer DeviceStage::gathered_layer(const DevicePass& pass, std::size_t layer) const {
  const std::int64_t first = places_.first_element[layer];
  const std::int64_t place = static_cast<std::int64_t>(layer % 2) * (layer_room_.stored + layer_room_.vectors);
  std::byte* const weights =
      gathered_words(pass, layer) + (options_.half ? first % 2 * element_bytes_ : std::int64_t{0});
  return {.weights = weights,
          .vectors = reinterpret_cast<float*>(options_.half ? pass.moved + place + layer_room_.stored : weights)};
}

float* DeviceStage::layer_gradients(const DevicePass& pass, std::size_t layer) const {
  const std::int64_t first = places_.first_element[layer];
  if (shares_.zero() < 2) return gradients_ + first;
  if (!shares_.reduces_layers()) return pass.whole_gradients + first;
  return reinterpret_cast<float*>(pass.moved + moved_bytes(false) +
                                  first * std::int64_t{sizeof(float)} % kDeviceTensorAlignment);
}

void DeviceStage::begin_gather(const DevicePass& pass, std::size_t layer) const {
  CallRecorder& recorder = *pass.recorder;
  const ElementRange range = range_of(layer), words = shares_.words_of(range), own = shares_.own();
  const std::int64_t per_word = options_.half ? 2 : 1;
  const std::int64_t first = std::max(own.first, words.first * per_word);
  const std::int64_t end = std::min(own.first + own.count, (words.first + words.count) * per_word);
  std::byte* const gathered = gathered_words(pass, layer);
  recorder.go_aside(DeviceStream::kReduce);
  if (first < end)
    recorder.copy(gathered + (first - words.first * per_word) * element_bytes_,
                  stored_weights_ + (first - own.first) * element_bytes_, (end - first) * element_bytes_);
  for (const DeviceExchange& exchange : shares_.layer_gather(range, gathered)) recorder.exchange(exchange);
  if (options_.half) {
    recorder.open_piece();
    const GatheredLayer whole = gathered_layer(pass, layer);
    vectors_.widen_within(recorder, range, whole.vectors, whole.weights, element_bytes_);
  }
  pass.moves->ahead = layer;
  pass.moves->gather = recorder.come_back();
}

void DeviceStage::fetch(const DevicePass& pass, std::size_t layer, std::optional<std::size_t> next) const {
  if (!shares_.gathers_layers() || range_of(layer).count == 0) return;
  if (pass.moves->ahead != layer) begin_gather(pass, layer);
  const std::int32_t gather = pass.moves->gather;
  pass.moves->ahead.reset();
  const bool looks_ahead = layout_of(pass.microbatch).rebuild.what == Rebuild::kNothing;
  if (next && looks_ahead && range_of(*next).count > 0) begin_gather(pass, *next);
  pass.recorder->await(gather);
}

void DeviceStage::fetch_forward(const DevicePass& pass, std::size_t layer) const {
  fetch(pass, layer, layer + 1 < layers_.size() ? std::optional(layer + 1) : std::nullopt);
}

void DeviceStage::fetch_backward(const DevicePass& pass, std::size_t layer) const {
  fetch(pass, layer, layer > 0 ? std::optional(layer - 1) : std::nullopt);
}

/// Zeros, when the gradients that had the place are reduced.
void DeviceStage::open_layer(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const {
  if (!shares_.reduces_layers() || range_of(layer).count == 0) return;
  if (pass.moves->reduction >= 0) pass.recorder->await(pass.moves->reduction);
  kernels.fill_zero(layer_gradients(pass, layer), range_of(layer).count);
}

/// What I has of gradients, all of vectors, waits for W.
void DeviceStage::leave_vectors(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const {
  if (shares_.reduces_layers())
    vectors_.add_within(kernels, range_of(layer), waiting_vectors_, layer_gradients(pass, layer));
}

void DeviceStage::take_vectors(DeviceKernels& kernels, const DevicePass& pass, std::size_t layer) const {
  if (shares_.reduces_layers())
    vectors_.take_within(kernels, range_of(layer), layer_gradients(pass, layer), waiting_vectors_);
}

void DeviceStage::reduce_layer(const DevicePass& pass, std::size_t layer) const {
  const ElementRange range = range_of(layer), own = shares_.own();
  if (!shares_.reduces_layers() || range.count == 0) return;
  CallRecorder& recorder = *pass.recorder;
  float* const gradients = layer_gradients(pass, layer);
  recorder.go_aside(DeviceStream::kReduce);
  for (const DeviceExchange& exchange : shares_.layer_reduction(range, gradients)) recorder.exchange(exchange);
  recorder.open_piece();
  const std::int64_t first = std::max(own.first, range.first);
  const std::int64_t end = std::min(own.first + own.count, range.first + range.count);
  if (first < end) {
    float* const sum = gradients_ + (first - own.first);
    recorder.add_gradients(sum, sum, gradients + (first - range.first), end - first);
  }
  pass.moves->reduction = recorder.come_back();
}

}  // namespace plumb
