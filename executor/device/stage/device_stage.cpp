#include "executor/device/stage/device_stage.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "executor/cpu/initial_weights.h"
#include "executor/device/layers/device_parameters.h"
#include "executor/device/stage/device_update.h"
#include "kernels/cpu/half.h"

namespace plumb {
namespace {

template <class T>
T* allocate_elements(DeviceMachine& machine, std::int64_t elements) {
  return reinterpret_cast<T*>(machine.allocate(elements * static_cast<std::int64_t>(sizeof(T))));
}

template <class T>
void upload_all(DeviceMachine& machine, T* to, std::span<const T> from) {
  machine.upload(to, std::as_bytes(from));
}

DeviceStageOptions options_of_share(DeviceStageOptions options) {
  options.layers = divide_layers(options.layers, options.tensor.ranks);
  return options;
}

}  // namespace

DeviceStage::DeviceStage(const DeviceStageOptions& options)
    : options_(options_of_share(options)),
      model_layers_(options.layers),
      element_bytes_(options.half ? 2 : 4),
      tokens_(tokens_of(options.work)),
      places_(device_parameter_places(options_.layers)),
      shares_(places_, options.shares),
      optimizer_places_(places_, shares_.own(),
                        {.optimizer = options.optimizer,
                         .is_half = options.half.has_value(),
                         .is_on_host = options.is_optimizer_on_host,
                         .window_bytes = options.update_window_bytes}),
      vectors_(places_) {
  if (options_.is_tied) find_tied_tables();
  if (options_.agrees) find_measured();
  place_layers();
  update_constants_ = constants_.size();
  const std::vector<float> of_update = update_constants(options_.optimizer);
  constants_.insert(constants_.end(), of_update.begin(), of_update.end());
  layer_room_ = layer_room();
}

/// Of all weights as they are stored, in whole words.
std::int64_t DeviceStage::stored_bytes() const {
  return (elements() * element_bytes_ + 3) / 4 * 4;
}

std::int64_t DeviceStage::version_bytes() const {
  const std::int64_t stored = stored_bytes();
  return options_.half ? aligned_bytes(stored) + vectors_.elements() * std::int64_t{sizeof(float)} : stored;
}

std::int64_t DeviceStage::input_bytes() const {
  return input_elements(options_.layers.front(), options_.work) * element_bytes_;
}

std::int64_t DeviceStage::output_bytes() const {
  return output_elements(options_.layers.back(), options_.work) * element_bytes_;
}

std::int64_t DeviceStage::held_bytes() const {
  const StageMemory held = memory();
  std::int64_t state = 0;  // with the room between its fields
  if (!optimizer_places_.is_on_host())
    state = optimizer_places_.block_bytes() + (options_.half ? shares_.own().count * std::int64_t{sizeof(float)} : 0);
  return held.parameter_bytes + held.gradient_bytes + state +
         static_cast<std::int64_t>(constants_.size() * sizeof(float)) +
         options_.steps * static_cast<std::int64_t>(sizeof(StepNumbers)) +
         (has_vector_block() ? vectors_.elements() * std::int64_t{sizeof(float)} : 0) +
         (shares_.reduces_layers() ? vectors_.elements() * std::int64_t{sizeof(float)} : 0) + tied_buffer_bytes() +
         data_bytes();
}

void DeviceStage::settle(DeviceMachine& machine, bool capture_gradients) {
  const std::vector<float> weights = first_weights();
  const ElementRange own = shares_.own();
  const auto own_weights =
      std::span(weights).subspan(static_cast<std::size_t>(own.first), static_cast<std::size_t>(own.count));
  const bool is_whole = shares_.zero() < 3;
  const std::span<const float> held = is_whole ? std::span(weights) : own_weights;
  if (options_.half) {
    std::vector<std::uint16_t> narrow_weights(held.size());
    narrow(narrow_weights.data(), held.data(), std::ssize(held), *options_.half);
    stored_weights_ = machine.allocate(is_whole ? stored_bytes() : std::ssize(held) * element_bytes_ + 2);
    machine.upload(stored_weights_, std::as_bytes(std::span(narrow_weights)));
    if (!optimizer_places_.has_master_on_host()) {
      master_ = allocate_elements<float>(machine, own.count);
      upload_all<float>(machine, master_, own_weights);
    }
  } else {
    master_ = allocate_elements<float>(machine, std::ssize(held));
    upload_all<float>(machine, master_, held);
    stored_weights_ = reinterpret_cast<std::byte*>(master_);
  }
  if (has_vector_block()) {
    const std::vector<float> vectors = vectors_.packed(weights);
    vector_block_ = allocate_elements<float>(machine, vectors_.elements());
    upload_all<float>(machine, vector_block_, vectors);
  }
  gradients_ = allocate_elements<float>(machine, shares_.zero() < 2 ? elements() : own.count);
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
  if (!constants_.empty()) {
    device_constants_ = allocate_elements<float>(machine, static_cast<std::int64_t>(constants_.size()));
    upload_all<float>(machine, device_constants_, constants_);
  }
  allocate_data(machine);
  numbers_ = allocate_elements<StepNumbers>(machine, options_.steps);
  if (shares_.reduces_layers()) waiting_vectors_ = allocate_elements<float>(machine, vectors_.elements());
  for (const ModelEnd end : {ModelEnd::kEmbedding, ModelEnd::kHead})
    if (const std::int64_t count = tied_table(end).count; count > 0 && shares_.zero() >= 2)
      whole_tied_[static_cast<std::size_t>(end)] = allocate_elements<float>(machine, count);
  if (capture_gradients) captured_ = allocate_elements<float>(machine, options_.steps * shares_.own().count);
}

void DeviceStage::optimizer_step(DeviceKernels& kernels, int step, std::byte* replaced, const StepNumbers* whole,
                                 std::byte* workspace) const {
  StepNumbers* numbers = numbers_ + step;
  if (replaced != nullptr) {
    const std::int64_t stored = stored_bytes();
    kernels.copy(replaced, stored_weights_, elements() * element_bytes_);
    auto* const packed = reinterpret_cast<float*>(replaced + aligned_bytes(stored));
    if (has_vector_block())
      kernels.copy(packed, vector_block_, vectors_.elements() * std::int64_t{sizeof(float)});
    else if (options_.half)
      vectors_.pack(kernels, packed, master_);
  }
  if (options_.agrees) kernels.decide_step(numbers, &whole->square_sum, 1, options_.clip_norm);
  const ElementRange own = shares_.own();
  if (captured_ != nullptr)
    kernels.copy(captured_ + step * own.count, own_gradients(), own.count * std::int64_t{sizeof(float)});
  for (const UpdatePart& part : optimizer_places_.parts()) update_part(kernels, part, numbers, workspace);
  if (shares_.zero() != 1) return;
  // What the reduction left of others' shares.
  if (own.first > 0) kernels.fill_zero(gradients_, own.first);
  const std::int64_t end = own.first + own.count;
  if (end < elements()) kernels.fill_zero(gradients_ + end, elements() - end);
}

void DeviceStage::begin_step(DeviceMachine& machine, int replay, float loss_scale) {
  std::vector<StepNumbers> numbers;
  for (int step = 1; step <= options_.steps; ++step) {
    StepNumbers& own = numbers.emplace_back(update_numbers(options_.optimizer, updates_ + step));
    own.loss_scale = loss_scale;
    own.replay = static_cast<std::uint64_t>(replay);
  }
  last_numbers_ = numbers.back();
  upload_all<StepNumbers>(machine, numbers_, numbers);
}

StepNumbers DeviceStage::end_step(DeviceMachine& machine) {
  if (options_.agrees) machine.download(std::as_writable_bytes(std::span(&last_numbers_, 1)), numbers_);
  if (last_numbers_.skips == 0) updates_ += options_.steps;
  return last_numbers_;
}

}  // namespace plumb
