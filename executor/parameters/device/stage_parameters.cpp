#include "executor/parameters/device/stage_parameters.h"

#include <algorithm>

#include "executor/layers/device/device_layer.h"

namespace plumb { inline namespace executor {

StageParameters::StageParameters(const DeviceStageOptions& options) {
  ParameterBlockOptions block{.tensor = options.tensor,
                              .first_layer = options.first_layer,
                              .half = options.half,
                              .optimizer = {.optimizer = options.optimizer,
                                            .is_half = options.half.has_value(),
                                            .is_on_host = options.is_optimizer_on_host,
                                            .window_bytes = options.update_window_bytes},
                              .seed = options.seed,
                              .steps = options.steps,
                              .shares = options.shares,
                              .resume = options.resume};
  blocks_.emplace_back(options.layers, block);
  block.part = ParameterPart::kExperts;
  block.experts = options.experts;
  block.shares.copies = options.expert_copies;
  const bool has_experts =
      std::ranges::any_of(options.layers, [](const Layer& layer) { return expert_parameter_count(layer) > 0; });
  if (has_experts) blocks_.emplace_back(options.layers, block);
  place_rooms();
}

/// The room has the weights of all blocks, then their gradients.
void StageParameters::place_rooms() {
  for (const ParameterBlock& block : blocks_) moved_weight_bytes_ += block.room().weight_bytes();
  std::int64_t weights = 0;
  for (ParameterBlock& block : blocks_) {
    block.place_room(weights, moved_weight_bytes_ + moved_gradient_bytes_);
    weights += block.room().weight_bytes();
    moved_gradient_bytes_ += block.room().gradients;
  }
}

bool StageParameters::has_parameters(std::size_t layer) const {
  return std::ranges::any_of(blocks_,
                             [&](const ParameterBlock& block) { return block.layout().range_of(layer).count > 0; });
}

template <class Count>
std::int64_t StageParameters::sum_of(Count count) const {
  std::int64_t sum = 0;
  for (const ParameterBlock& block : blocks_) sum += count(block.layout());
  return sum;
}

/// Each block's bytes begin at an aligned byte.
template <class Count>
std::int64_t StageParameters::stacked(Count count) const {
  std::int64_t bytes = 0;
  for (const ParameterBlock& block : blocks_) bytes = aligned_bytes(bytes) + count(block.layout());
  return bytes;
}

std::int64_t StageParameters::weight_bytes() const {
  return sum_of([](const BlockLayout& block) { return block.weight_bytes(); });
}

std::int64_t StageParameters::gradient_bytes() const {
  return sum_of([](const BlockLayout& block) { return block.gradient_bytes(); });
}

std::int64_t StageParameters::held_bytes() const {
  return sum_of([](const BlockLayout& block) { return block.held_bytes(); });
}

std::int64_t StageParameters::version_bytes() const {
  return stacked([](const BlockLayout& block) { return block.version_bytes(); });
}

std::int64_t StageParameters::unsharded_bytes() const {
  return stacked([](const BlockLayout& block) {
    const bool is_gathered = block.shares().zero() == 3 && !block.shares().gathers_layers();
    return is_gathered ? block.version_bytes() : 0;
  });
}

std::int64_t StageParameters::whole_gradient_bytes() const {
  return stacked([](const BlockLayout& block) { return block.whole_gradient_bytes(); });
}

std::int64_t StageParameters::optimizer_bytes() const {
  return sum_of([](const BlockLayout& block) { return block.optimizer().state_bytes(); });
}

std::int64_t StageParameters::host_bytes() const {
  return sum_of([](const BlockLayout& block) {
    return block.optimizer().is_on_host() ? block.optimizer().block_bytes() : std::int64_t{0};
  });
}

std::int64_t StageParameters::update_workspace_bytes() const {
  std::int64_t most = 0;
  for (const ParameterBlock& block : blocks_) most = std::max(most, block.layout().optimizer().workspace_bytes());
  return most;
}

std::int64_t StageParameters::moved_bytes(bool is_backward) const {
  return moved_weight_bytes_ + (is_backward ? moved_gradient_bytes_ : 0);
}

void StageParameters::settle(DeviceMachine& machine, bool capture_gradients) {
  for (ParameterBlock& block : blocks_) block.settle(machine, capture_gradients);
}

/// A replaced version has the weights of all blocks; gathered weights are read where they are sharded alone.
const std::byte* StageParameters::version_of(std::size_t block, const std::byte* weights) const {
  const auto is_sharded = [&](const ParameterBlock& of) { return of.layout().shares().zero() == 3; };
  if (weights == nullptr || (is_sharded(common()) && !is_sharded(blocks_[block]))) return nullptr;
  return weights + (block == 0 ? 0 : aligned_bytes(common().layout().version_bytes()));
}

float* StageParameters::whole_gradients_of(std::size_t block, float* whole_gradients) const {
  if (whole_gradients == nullptr || block == 0) return whole_gradients;
  return whole_gradients + aligned_bytes(common().layout().whole_gradient_bytes()) / std::int64_t{sizeof(float)};
}

StoredWeights StageParameters::weights_of(std::size_t block, std::size_t layer, const PassParameters& pass) const {
  return blocks_[block].weights_of(layer, version_of(block, pass.weights), pass.moved);
}

float* StageParameters::gradients_of(std::size_t block, std::size_t layer, const PassParameters& pass) const {
  return blocks_[block].gradients_of(layer, whole_gradients_of(block, pass.whole_gradients), pass.moved);
}

void StageParameters::open_gradients(DeviceKernels& kernels, float* whole_gradients) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    blocks_[i].open_gradients(kernels, whole_gradients_of(i, whole_gradients));
}

void StageParameters::reduce(CallRecorder& recorder, float* whole_gradients, std::size_t bucket) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    blocks_[i].reduce(recorder, whole_gradients_of(i, whole_gradients), bucket);
}

void StageParameters::gather(CallRecorder& recorder, std::byte* gathered) const {
  for (const ParameterBlock& block : blocks_) {
    block.gather(recorder, gathered);
    if (gathered != nullptr) gathered += aligned_bytes(block.layout().version_bytes());
  }
}

void StageParameters::find_measured(ElementRange others) {
  for (ParameterBlock& block : blocks_) block.find_measured(&block == &blocks_.front() ? others : ElementRange{});
}

std::int64_t StageParameters::partial_count() const {
  std::int64_t count = 0;
  for (const ParameterBlock& block : blocks_) count += block.partial_count();
  return count;
}

void StageParameters::measure_gradients(DeviceKernels& kernels, float* partials, float limit) const {
  for (const ParameterBlock& block : blocks_) {
    block.measure_gradients(kernels, partials, limit);
    partials += block.partial_count();
  }
}

void StageParameters::keep_version(DeviceKernels& kernels, std::byte* replaced) const {
  for (const ParameterBlock& block : blocks_) {
    block.keep_version(kernels, replaced);
    replaced += aligned_bytes(block.layout().version_bytes());
  }
}

void StageParameters::update(CallRecorder& recorder, int step, const UpdateInputs& inputs) const {
  for (const ParameterBlock& block : blocks_) block.update(recorder, step, inputs);
}

void StageParameters::copy_weights(DeviceMachine& machine, ModelValues& model) const {
  for (const ParameterBlock& block : blocks_) block.copy_weights(machine, model);
}

void StageParameters::copy_gradients(DeviceMachine& machine, ModelValues& model, int step, float factor) const {
  for (const ParameterBlock& block : blocks_) block.copy_gradients(machine, model, step, factor);
}

void StageParameters::save(DeviceMachine& machine, TrainingState& state) const {
  for (const ParameterBlock& block : blocks_) block.save(machine, state);
}

}}  // namespace plumb::executor
