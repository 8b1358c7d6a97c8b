#include "executor/stages/device/stage_data.h"

#include <variant>

#include "executor/machines/device_values.h"
#include "kernels/cpu/half.h"

namespace plumb { inline namespace executor {

StageData::StageData(const DeviceStageOptions& options, const StageSlices& slices)
    : first_(slices.layers().front()),
      last_(slices.layers().back()),
      work_(options.work),
      tensor_(options.tensor),
      half_(options.half),
      microbatches_(options.microbatches),
      tokens_(slices.tokens()),
      expert_layers_(slices.expert_layers()) {}

bool StageData::reads_tokens() const {
  return std::holds_alternative<EmbeddingLayer>(first_);
}

bool StageData::reads_samples() const {
  return std::holds_alternative<InputLayer>(first_);
}

bool StageData::reads_targets() const {
  const auto* const loss = std::get_if<LossLayer>(&last_);
  return std::holds_alternative<HeadLayer>(last_) || (loss != nullptr && loss->loss == LossKind::kCrossEntropy);
}

bool StageData::reads_sample_targets() const {
  const auto* const loss = std::get_if<LossLayer>(&last_);
  return loss != nullptr && loss->loss == LossKind::kSquaredError;
}

/// Bytes of a micro-batch's samples.
std::int64_t StageData::sample_bytes() const {
  return reads_samples() ? output_elements(first_, work_) * (half_ ? 2 : 4) : 0;
}

std::int64_t StageData::sample_target_elements() const {
  return reads_sample_targets() ? tokens_ * std::get<LossLayer>(last_).width : 0;
}

std::int64_t StageData::bytes() const {
  const std::int64_t of_tokens = static_cast<int>(reads_tokens()) + static_cast<int>(reads_targets()) +
                                 static_cast<int>(ends_model()) + expert_layers_;
  return microbatches_ *
         ((of_tokens * tokens_ + sample_target_elements()) * std::int64_t{sizeof(float)} + sample_bytes());
}

void StageData::allocate(DeviceMachine& machine) {
  const std::int64_t all_tokens = microbatches_ * tokens_;
  if (reads_tokens()) token_numbers_ = allocate_elements<std::int32_t>(machine, all_tokens);
  if (reads_samples()) samples_ = machine.allocate(microbatches_ * sample_bytes());
  if (reads_targets()) target_numbers_ = allocate_elements<std::int32_t>(machine, all_tokens);
  if (reads_sample_targets())
    sample_targets_ = allocate_elements<float>(machine, microbatches_ * sample_target_elements());
  if (ends_model()) losses_ = allocate_elements<float>(machine, all_tokens);
  if (has_experts()) balance_losses_ = allocate_elements<float>(machine, expert_layers_ * all_tokens);
}

void StageData::upload_tokens(DeviceMachine& machine, std::span<const std::int32_t> tokens) const {
  if (tensor_.ranks == 1) return upload_all(machine, token_numbers_, tokens);
  const std::int64_t rows = std::get<EmbeddingLayer>(first_).vocab;
  std::vector<std::int32_t> own(tokens.begin(), tokens.end());
  for (std::int32_t& token : own) {
    const std::int64_t row = token - tensor_.rank * rows;
    token = row >= 0 && row < rows ? static_cast<std::int32_t>(row) : -1;
  }
  upload_all<std::int32_t>(machine, token_numbers_, own);
}

void StageData::upload_targets(DeviceMachine& machine, std::span<const std::int32_t> targets) const {
  upload_all(machine, target_numbers_, targets);
}

void StageData::upload_samples(DeviceMachine& machine, std::span<const float> samples) const {
  if (!half_) return upload_all(machine, samples_, samples);
  std::vector<std::uint16_t> narrow_samples(samples.size());
  narrow(narrow_samples.data(), samples.data(), std::ssize(samples), *half_);
  upload_all<std::uint16_t>(machine, samples_, narrow_samples);
}

void StageData::upload_sample_targets(DeviceMachine& machine, std::span<const float> targets) const {
  upload_all(machine, sample_targets_, targets);
}

StageDataPlaces StageData::places_of(int microbatch, std::int64_t first_row, std::int64_t expert_layer) const {
  const std::int64_t row = microbatch * tokens_ + first_row;
  const auto at = [](auto* first, std::int64_t element) { return first == nullptr ? nullptr : first + element; };
  return {.tokens = at(token_numbers_, row),
          .targets = at(target_numbers_, row),
          .samples = at(samples_, microbatch * sample_bytes()),
          .sample_targets = at(sample_targets_, microbatch * sample_target_elements()),
          .losses = at(losses_, row),
          .balance_losses = at(balance_losses_, row + expert_layer * microbatches_ * tokens_)};
}

std::vector<double> StageData::losses(DeviceMachine& machine) const {
  return sums_of_losses(machine, losses_, 1);
}

std::vector<double> StageData::balance_losses(DeviceMachine& machine) const {
  return sums_of_losses(machine, balance_losses_, expert_layers_);
}

/// losses: [layers, microbatches, T], or null
std::vector<double> StageData::sums_of_losses(DeviceMachine& machine, const float* losses, std::int64_t layers) const {
  std::vector<double> sums(static_cast<std::size_t>(microbatches_), 0);
  if (losses == nullptr) return sums;
  std::vector<float> of_tokens(static_cast<std::size_t>(layers * microbatches_ * tokens_));
  machine.download(std::as_writable_bytes(std::span(of_tokens)), losses);
  for (std::size_t i = 0; i < of_tokens.size(); ++i)
    sums[i / static_cast<std::size_t>(tokens_) % sums.size()] += of_tokens[i];
  return sums;
}

}}  // namespace plumb::executor
