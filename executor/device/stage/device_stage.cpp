#include "executor/device/stage/device_stage.h"

#include <algorithm>

#include "executor/device/device_values.h"
#include "executor/device/stage/device_update.h"
#include "executor/training/training_state.h"

namespace plumb { inline namespace executor {
namespace {

DeviceStageOptions options_of_share(DeviceStageOptions options) {
  options.layers = divide_layers(options.layers, options.tensor.ranks);
  return options;
}

}  // namespace

DeviceStage::DeviceStage(const DeviceStageOptions& options)
    : options_(options_of_share(options)),
      model_layers_(options.layers),
      element_bytes_(options.half ? 2 : 4),
      tokens_(tokens_of(options.work)) {
  make_blocks();
  if (options_.is_tied) find_tied_tables();
  if (options_.agrees)
    for (ParameterBlock& block : blocks_)
      block.find_measured(&block == &blocks_.front() ? tied_table(ModelEnd::kHead) : ElementRange{});
  place_layers();
  update_constants_ = constants_.size();
  const std::vector<float> of_update = update_constants(options_.optimizer);
  constants_.insert(constants_.end(), of_update.begin(), of_update.end());
}

void DeviceStage::make_blocks() {
  ParameterBlockOptions block{.tensor = options_.tensor,
                              .first_layer = options_.first_layer,
                              .half = options_.half,
                              .optimizer = {.optimizer = options_.optimizer,
                                            .is_half = options_.half.has_value(),
                                            .is_on_host = options_.is_optimizer_on_host,
                                            .window_bytes = options_.update_window_bytes},
                              .seed = options_.seed,
                              .steps = options_.steps,
                              .shares = options_.shares,
                              .resume = options_.resume};
  blocks_.emplace_back(model_layers_, block);
  block.part = ParameterPart::kExperts;
  block.experts = options_.experts;
  block.shares.copies = options_.expert_copies;
  const bool has_experts =
      std::ranges::any_of(model_layers_, [](const Layer& layer) { return expert_parameter_count(layer) > 0; });
  if (has_experts) blocks_.emplace_back(model_layers_, block);
  place_moved();
}

std::int64_t DeviceStage::version_bytes() const {
  return stacked([](const ParameterBlock& block) { return block.version_bytes(); });
}

std::int64_t DeviceStage::whole_gradient_bytes() const {
  return stacked([](const ParameterBlock& block) { return block.whole_gradient_bytes(); });
}

std::int64_t DeviceStage::optimizer_bytes() const {
  return sum_of([](const ParameterBlock& block) { return block.optimizer_bytes(); });
}

std::int64_t DeviceStage::host_bytes() const {
  return sum_of([](const ParameterBlock& block) { return block.host_bytes(); });
}

std::int64_t DeviceStage::partial_count() const {
  return sum_of([](const ParameterBlock& block) { return block.partial_count(); });
}

std::int64_t DeviceStage::update_workspace_bytes() const {
  std::int64_t most = 0;
  for (const ParameterBlock& block : blocks_) most = std::max(most, block.update_workspace_bytes());
  return most;
}

/// Weights that are replaced are all there; those that are gathered, where they are sharded.
const std::byte* DeviceStage::version_of(std::size_t block, const DevicePass& pass) const {
  if (pass.weights == nullptr || (common().shares().zero() == 3 && blocks_[block].shares().zero() < 3)) return nullptr;
  return pass.weights + (block == 0 ? 0 : aligned_bytes(common().version_bytes()));
}

float* DeviceStage::whole_gradients_of(std::size_t block, const DevicePass& pass) const {
  if (pass.whole_gradients == nullptr || block == 0) return pass.whole_gradients;
  return pass.whole_gradients + aligned_bytes(common().whole_gradient_bytes()) / std::int64_t{sizeof(float)};
}

std::int64_t DeviceStage::input_bytes(int slice) const {
  return input_elements(options_.layers.front(), slices_[static_cast<std::size_t>(slice)].work) * element_bytes_;
}

std::int64_t DeviceStage::output_bytes(int slice) const {
  return output_elements(options_.layers.back(), slices_[static_cast<std::size_t>(slice)].work) * element_bytes_;
}

std::int64_t DeviceStage::held_bytes() const {
  return sum_of([](const ParameterBlock& block) { return block.held_bytes(); }) +
         static_cast<std::int64_t>(constants_.size() * sizeof(float)) +
         options_.steps * static_cast<std::int64_t>(sizeof(StepNumbers)) + tied_buffer_bytes() + data_bytes();
}

void DeviceStage::settle(DeviceMachine& machine, bool capture_gradients) {
  for (ParameterBlock& block : blocks_) block.settle(machine, capture_gradients);
  if (options_.resume != nullptr) updates_ = options_.resume->updates;
  if (!constants_.empty()) {
    device_constants_ = allocate_elements<float>(machine, static_cast<std::int64_t>(constants_.size()));
    upload_all<float>(machine, device_constants_, constants_);
  }
  allocate_data(machine);
  numbers_ = allocate_elements<StepNumbers>(machine, options_.steps);
  for (const ModelEnd end : {ModelEnd::kEmbedding, ModelEnd::kHead})
    if (const std::int64_t count = tied_table(end).count; count > 0 && common().shares().zero() >= 2)
      whole_tied_[static_cast<std::size_t>(end)] = allocate_elements<float>(machine, count);
}

void DeviceStage::open_gradients(DeviceKernels& kernels, const DevicePass& pass) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].open_gradients(kernels, whole_gradients_of(i, pass));
}

void DeviceStage::reduce(CallRecorder& recorder, const DevicePass& pass, std::size_t bucket) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].reduce(recorder, whole_gradients_of(i, pass), bucket);
}

void DeviceStage::gather(CallRecorder& recorder, std::byte* gathered) const {
  for (const ParameterBlock& block : blocks_) {
    block.gather(recorder, gathered);
    if (gathered != nullptr) gathered += aligned_bytes(block.version_bytes());
  }
}

void DeviceStage::optimizer_step(CallRecorder& kernels, int step, std::byte* replaced, const StepNumbers* whole,
                                 std::byte* workspace) const {
  StepNumbers* numbers = numbers_ + step;
  for (std::size_t i = 0; replaced != nullptr && i < blocks_.size(); ++i) {
    blocks_[i].keep_version(kernels, replaced);
    replaced += aligned_bytes(blocks_[i].version_bytes());
  }
  if (options_.agrees) kernels.decide_step(numbers, &whole->square_sum, 1, options_.clip_norm);
  for (const ParameterBlock& block : blocks_)
    block.update(kernels, step, numbers, device_constants_ + update_constants_, workspace);
}

void DeviceStage::copy_weights(DeviceMachine& machine, ModelValues& model) const {
  for (const ParameterBlock& block : blocks_) block.copy_weights(machine, model);
}

void DeviceStage::copy_gradients(DeviceMachine& machine, ModelValues& model, int step) const {
  for (const ParameterBlock& block : blocks_) block.copy_gradients(machine, model, step, last_numbers_.gradient_factor);
}

void DeviceStage::save(DeviceMachine& machine, TrainingState& state) const {
  state.updates = updates_;
  for (const ParameterBlock& block : blocks_) block.save(machine, state);
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

}}  // namespace plumb::executor
