#include "executor/stages/device/device_stage.h"

#include <cmath>

#include "executor/machines/device_values.h"
#include "executor/parameters/device/device_update.h"
#include "executor/parameters/training_state.h"

namespace plumb { inline namespace executor {

DeviceStage::DeviceStage(const DeviceStageOptions& options)
    : options_(options),
      parameters_(options),
      slices_(options),
      data_(options, slices_),
      constants_(slices_.constants()) {
  if (options_.is_tied) tied_ = TiedTables(slices_.layers(), parameters_.common());
  if (options_.agrees) parameters_.find_measured(tied_table(ModelEnd::kHead));
  const std::vector<float> of_update = update_constants(options_.optimizer);
  constants_.insert(constants_.end(), of_update.begin(), of_update.end());
}

StageMemory DeviceStage::memory() const {
  StageMemory memory = slices_.rebuilt_memory();
  memory.forward_workspace_bytes += parameters_.moved_bytes(false);
  memory.backward_workspace_bytes += parameters_.moved_bytes(true);
  memory.parameter_bytes = parameters_.weight_bytes();
  memory.gradient_bytes = parameters_.gradient_bytes();
  memory.optimizer_bytes = !options_.is_optimizer_on_host ? parameters_.optimizer_bytes() : 0;
  memory.unsharded_bytes = parameters_.unsharded_bytes();
  return memory;
}

std::vector<StageMemory> DeviceStage::microbatch_memory() const {
  std::vector<StageMemory> memory = slices_.microbatch_memory();
  for (StageMemory& one : memory) {
    one.forward_workspace_bytes += parameters_.moved_bytes(false);
    one.backward_workspace_bytes += parameters_.moved_bytes(true);
  }
  return memory;
}

std::int64_t DeviceStage::held_bytes() const {
  return parameters_.held_bytes() + static_cast<std::int64_t>(constants_.size() * sizeof(float)) +
         options_.steps * static_cast<std::int64_t>(sizeof(StepNumbers)) + tied_.buffer_bytes(parameters_.common()) +
         data_.bytes();
}

void DeviceStage::settle(DeviceMachine& machine, bool capture_gradients) {
  parameters_.settle(machine, capture_gradients);
  if (options_.resume != nullptr) updates_ = options_.resume->updates;
  if (!constants_.empty()) {
    device_constants_ = allocate_elements<float>(machine, std::ssize(constants_));
    upload_all<float>(machine, device_constants_, constants_);
  }
  data_.allocate(machine);
  numbers_ = allocate_elements<StepNumbers>(machine, options_.steps);
  tied_.allocate(machine, parameters_.common());
}

PassStage DeviceStage::pass_stage() const {
  return {.options = options_,
          .slices = slices_,
          .parameters = parameters_,
          .data = data_,
          .constants = device_constants_,
          .numbers = numbers_};
}

void DeviceStage::forward(CallRecorder& recorder, const DevicePass& pass) const {
  StagePass(pass_stage(), recorder, pass).forward();
}

void DeviceStage::recompute(CallRecorder& recorder, const DevicePass& pass) const {
  StagePass(pass_stage(), recorder, pass).recompute();
}

void DeviceStage::input_grad(CallRecorder& recorder, const DevicePass& pass) const {
  StagePass(pass_stage(), recorder, pass).input_grad();
}

void DeviceStage::weight_grad(CallRecorder& recorder, const DevicePass& pass) const {
  StagePass(pass_stage(), recorder, pass).weight_grad();
}

void DeviceStage::backward(CallRecorder& recorder, const DevicePass& pass) const {
  StagePass(pass_stage(), recorder, pass).backward();
}

void DeviceStage::open_sequence_gradients(DeviceKernels& kernels, float* gradients) const {
  kernels.fill_zero(gradients, slices_.sequence_gradient_bytes() / std::int64_t{sizeof(float)});
}

void DeviceStage::measure_gradients(DeviceKernels& kernels, float* partials) const {
  const float limit = options_.half == HalfFormat::kFp16 ? kLargestFp16 : INFINITY;  // beyond it one has overflown
  parameters_.measure_gradients(kernels, partials, limit);
}

void DeviceStage::optimizer_step(CallRecorder& recorder, int step, std::byte* replaced, const StepNumbers* whole,
                                 std::byte* workspace) const {
  StepNumbers* const numbers = numbers_ + step;
  if (replaced != nullptr) parameters_.keep_version(recorder, replaced);
  if (options_.agrees) recorder.decide_step(numbers, &whole->square_sum, 1, options_.clip_norm);
  parameters_.update(
      recorder, step,
      {.numbers = numbers, .constants = device_constants_ + slices_.constants().size(), .workspace = workspace});
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

void DeviceStage::copy_gradients(DeviceMachine& machine, ModelValues& model, int step) const {
  parameters_.copy_gradients(machine, model, step, last_numbers_.gradient_factor);
}

void DeviceStage::save(DeviceMachine& machine, TrainingState& state) const {
  state.updates = updates_;
  parameters_.save(machine, state);
}

}}  // namespace plumb::executor
