#include "executor/parameters/device/parameter_block.h"

#include <algorithm>

#include "executor/layers/device/device_layer.h"
#include "executor/parameters/device/block_values.h"
#include "executor/parameters/optimizer_state.h"

namespace plumb { inline namespace executor {

ParameterBlock::ParameterBlock(const std::vector<Layer>& layers, const ParameterBlockOptions& options)
    : layout_(layers, options), room_(layer_room(layout_)) {}

void ParameterBlock::settle(DeviceMachine& machine, bool capture_gradients) {
  memory_ = settled_block(machine, layout_, capture_gradients);
}

void ParameterBlock::place_room(std::int64_t first_weights, std::int64_t first_gradients) {
  room_.first_weights = first_weights;
  room_.first_gradients = first_gradients;
}

StoredWeights ParameterBlock::weights_of(std::size_t layer, const std::byte* version, std::byte* moved) const {
  const std::int64_t first = layout_.places().first_element[layer];
  const PackedVectors& vectors = layout_.vectors();
  const bool has_vectors = vectors.elements() > 0, has_block = layout_.has_vector_block();
  const bool is_packed = has_block || (layout_.is_half() && has_vectors && version != nullptr);
  if (layout_.shares().gathers_layers()) {
    const MovedLayer here = moved_layer(moved, layer);
    return {.stored = here.stored(),
            .vectors = here.vectors(),
            .packed = is_packed ? &vectors : nullptr,
            .first_packed = is_packed ? vectors.count_before(first) : 0};
  }
  const std::byte* const weights = version != nullptr ? version : memory_.stored_weights;
  const std::byte* const stored = weights + first * layout_.element_bytes();
  if (!has_vectors) return {.stored = stored};
  const float* all = is_packed ? memory_.vector_block : memory_.master;
  if (version != nullptr)
    all = reinterpret_cast<const float*>(is_packed ? version + aligned_bytes(layout_.stored_bytes()) : version);
  return {.stored = stored, .vectors = is_packed ? all : all + first, .packed = is_packed ? &vectors : nullptr};
}

float* ParameterBlock::gradients_of(std::size_t layer, float* whole, std::byte* moved) const {
  const std::int64_t first = layout_.places().first_element[layer];
  if (layout_.shares().zero() < 2) return memory_.gradients + first;
  if (!layout_.shares().reduces_layers()) return whole + first;
  return moved_layer(moved, layer).gradients();
}

void ParameterBlock::open_gradients(DeviceKernels& kernels, float* whole) const {
  if (layout_.whole_gradient_bytes() > 0) kernels.fill_zero(whole, layout_.elements());
}

void ParameterBlock::reduce(CallRecorder& recorder, float* whole, std::size_t bucket) const {
  const DeviceShares& shares = layout_.shares();
  if (shares.reduces_layers()) return;  // passes have done so
  const bool is_share = shares.zero() >= 2;
  const ElementRange own = layout_.own();
  float* gradients = is_share ? whole : memory_.gradients;
  for (const DeviceExchange& exchange : shares.reduction(bucket, gradients)) recorder.exchange(exchange);
  if (!is_share) return;
  recorder.open_piece();
  if (own.count > 0) recorder.add_gradients(memory_.gradients, memory_.gradients, gradients + own.first, own.count);
}

void ParameterBlock::gather(CallRecorder& recorder, std::byte* gathered) const {
  const DeviceShares& shares = layout_.shares();
  if (shares.zero() == 0 || shares.gathers_layers()) return;
  const bool is_sharded = shares.zero() == 3;
  const std::int64_t element_bytes = layout_.element_bytes();
  std::byte* weights = is_sharded ? gathered : memory_.stored_weights;
  const ElementRange own = layout_.own();
  if (is_sharded) recorder.open_piece();
  if (is_sharded && own.count > 0)
    recorder.copy(weights + own.first * element_bytes, memory_.stored_weights, own.count * element_bytes);
  for (const DeviceExchange& exchange : shares.gather(weights)) recorder.exchange(exchange);
  if (!layout_.is_half()) return;
  float* vectors =
      is_sharded ? reinterpret_cast<float*>(gathered + aligned_bytes(layout_.stored_bytes())) : memory_.vector_block;
  layout_.vectors().widen(recorder, vectors, weights, element_bytes);
}

void ParameterBlock::find_measured(ElementRange others) {
  const ParameterBlockOptions& options = layout_.options();
  std::vector<ElementRange> left_out =
      uncounted_elements(layout_.places(), layout_.layers(), options.tensor, options.experts);
  if (others.count > 0) left_out.push_back(others);
  std::ranges::sort(left_out, {}, &ElementRange::first);
  const ElementRange own = layout_.shares().spoken_for();
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
  const std::int64_t first = layout_.shares().zero() < 2 ? 0 : layout_.own().first;
  for (const ElementRange& range : measured_) {
    kernels.sum_of_squares(partials, memory_.gradients + (range.first - first), range.count, limit);
    partials += kGradientPieces;
  }
}

void ParameterBlock::keep_version(DeviceKernels& kernels, std::byte* replaced) const {
  kernels.copy(replaced, memory_.stored_weights, layout_.elements() * layout_.element_bytes());
  auto* const packed = reinterpret_cast<float*>(replaced + aligned_bytes(layout_.stored_bytes()));
  if (layout_.has_vector_block())
    kernels.copy(packed, memory_.vector_block, layout_.vectors().elements() * kSingleBytes);
  else if (layout_.is_half())
    layout_.vectors().pack(kernels, packed, memory_.master);
}

void ParameterBlock::update(CallRecorder& recorder, int step, const UpdateInputs& inputs) const {
  enqueue_block_update(recorder, layout_, memory_, step, inputs);
}

void ParameterBlock::copy_weights(DeviceMachine& machine, ModelValues& model) const {
  copy_values(layout_, model, read_master(machine, layout_, memory_), 1);
}

void ParameterBlock::copy_gradients(DeviceMachine& machine, ModelValues& model, int step, float factor) const {
  copy_values(layout_, model, read_captured(machine, layout_, memory_, step), factor);
}

void ParameterBlock::save(DeviceMachine& machine, TrainingState& state) const {
  if (!layout_.shares().speaks()) return;
  const std::vector<std::byte> block = read_state(machine, layout_, memory_);
  save_values(layout_, state, read_master(machine, layout_, memory_), block);
}

}}  // namespace plumb::executor
