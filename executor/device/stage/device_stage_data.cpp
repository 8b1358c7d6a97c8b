// What a stage reads of the data, at the model's ends, and the losses that it leaves.

#include <variant>

#include "executor/device/device_values.h"
#include "executor/device/stage/device_stage.h"
#include "kernels/cpu/half.h"

namespace plumb { inline namespace executor {
namespace {

const LossLayer* loss_of(const std::vector<Layer>& layers) {
  return std::get_if<LossLayer>(&layers.back());
}

}  // namespace

bool DeviceStage::reads_tokens() const {
  return std::holds_alternative<EmbeddingLayer>(options_.layers.front());
}

bool DeviceStage::reads_samples() const {
  return std::holds_alternative<InputLayer>(options_.layers.front());
}

bool DeviceStage::reads_targets() const {
  const LossLayer* const loss = loss_of(options_.layers);
  return std::holds_alternative<HeadLayer>(options_.layers.back()) ||
         (loss != nullptr && loss->loss == LossKind::kCrossEntropy);
}

bool DeviceStage::reads_sample_targets() const {
  const LossLayer* const loss = loss_of(options_.layers);
  return loss != nullptr && loss->loss == LossKind::kSquaredError;
}

/// Of a micro-batch.
std::int64_t DeviceStage::sample_bytes() const {
  return reads_samples() ? output_elements(options_.layers.front(), options_.work) * element_bytes_ : 0;
}

std::int64_t DeviceStage::sample_target_elements() const {
  return reads_sample_targets() ? tokens_ * loss_of(options_.layers)->width : 0;
}

std::int64_t DeviceStage::data_bytes() const {
  const std::int64_t of_tokens = static_cast<int>(reads_tokens()) + static_cast<int>(reads_targets()) +
                                 static_cast<int>(ends_model()) + expert_layers_;
  return options_.microbatches *
         ((of_tokens * tokens_ + sample_target_elements()) * std::int64_t{sizeof(float)} + sample_bytes());
}

void DeviceStage::allocate_data(DeviceMachine& machine) {
  const std::int64_t all_tokens = options_.microbatches * tokens_;
  if (reads_tokens()) token_numbers_ = allocate_elements<std::int32_t>(machine, all_tokens);
  if (reads_samples()) samples_ = machine.allocate(options_.microbatches * sample_bytes());
  if (reads_targets()) target_numbers_ = allocate_elements<std::int32_t>(machine, all_tokens);
  if (reads_sample_targets())
    sample_targets_ = allocate_elements<float>(machine, options_.microbatches * sample_target_elements());
  if (ends_model()) losses_ = allocate_elements<float>(machine, all_tokens);
  if (has_experts()) balance_losses_ = allocate_elements<float>(machine, expert_layers_ * all_tokens);
}

void DeviceStage::upload_tokens(DeviceMachine& machine, std::span<const std::int32_t> tokens) const {
  if (options_.tensor.ranks == 1) return upload_all(machine, token_numbers_, tokens);
  const std::int64_t rows = std::get<EmbeddingLayer>(options_.layers.front()).vocab;
  std::vector<std::int32_t> own(tokens.begin(), tokens.end());
  for (std::int32_t& token : own) {
    const std::int64_t row = token - options_.tensor.rank * rows;
    token = row >= 0 && row < rows ? static_cast<std::int32_t>(row) : -1;
  }
  upload_all<std::int32_t>(machine, token_numbers_, own);
}

void DeviceStage::upload_targets(DeviceMachine& machine, std::span<const std::int32_t> targets) const {
  upload_all(machine, target_numbers_, targets);
}

void DeviceStage::upload_samples(DeviceMachine& machine, std::span<const float> samples) const {
  if (!options_.half) return upload_all(machine, samples_, samples);
  std::vector<std::uint16_t> narrow_samples(samples.size());
  narrow(narrow_samples.data(), samples.data(), std::ssize(samples), *options_.half);
  upload_all<std::uint16_t>(machine, samples_, narrow_samples);
}

void DeviceStage::upload_sample_targets(DeviceMachine& machine, std::span<const float> targets) const {
  upload_all(machine, sample_targets_, targets);
}

std::vector<double> DeviceStage::losses(DeviceMachine& machine) const {
  return sums_of_losses(machine, losses_, 1);
}

std::vector<double> DeviceStage::balance_losses(DeviceMachine& machine) const {
  return sums_of_losses(machine, balance_losses_, expert_layers_);
}

/// losses: [layers, microbatches, T], or null
std::vector<double> DeviceStage::sums_of_losses(DeviceMachine& machine, const float* losses,
                                                std::int64_t layers) const {
  std::vector<double> sums(static_cast<std::size_t>(options_.microbatches), 0);
  if (losses == nullptr) return sums;
  std::vector<float> of_tokens(static_cast<std::size_t>(layers * options_.microbatches * tokens_));
  machine.download(std::as_writable_bytes(std::span(of_tokens)), losses);
  for (std::size_t i = 0; i < of_tokens.size(); ++i)
    sums[i / static_cast<std::size_t>(tokens_) % sums.size()] += of_tokens[i];
  return sums;
}

}}  // namespace plumb::executor
