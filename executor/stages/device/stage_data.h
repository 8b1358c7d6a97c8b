#pragma once
// The data that a stage reads at the model's ends (tokens, samples, targets) for all micro-batches of a replay, and the
// losses that it leaves.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/machines/device_machine.h"
#include "executor/parameters/device/device_stage_options.h"
#include "executor/stages/device/stage_slices.h"

namespace plumb { inline namespace executor {

/// Addresses of one micro-batch's data, from a row on; null where the stage has none.
struct StageDataPlaces {
  const std::int32_t* tokens = nullptr;
  const std::int32_t* targets = nullptr;
  const std::byte* samples = nullptr;     ///< of the whole micro-batch
  const float* sample_targets = nullptr;  ///< of the whole micro-batch
  float* losses = nullptr;
  float* balance_losses = nullptr;
};

class StageData {
 public:
  StageData(const DeviceStageOptions& options, const StageSlices& slices);

  bool reads_tokens() const;
  bool reads_samples() const;
  bool reads_targets() const;
  bool reads_sample_targets() const;
  bool ends_model() const { return reads_targets() || reads_sample_targets(); }
  bool has_experts() const { return expert_layers_ > 0; }

  std::int64_t bytes() const;
  void allocate(DeviceMachine& machine);

  // Data of all micro-batches before a replay, only where a layer reads them.
  /// tokens, targets: [microbatches * T], each slice by itself; for samples that are no text their labels. Tokens whose
  /// rows of the table another tensor rank has become -1.
  void upload_tokens(DeviceMachine& machine, std::span<const std::int32_t> tokens) const;
  void upload_targets(DeviceMachine& machine, std::span<const std::int32_t> targets) const;
  /// samples: [microbatches, T, ...]
  void upload_samples(DeviceMachine& machine, std::span<const float> samples) const;
  /// targets: [microbatches, T, width]
  void upload_sample_targets(DeviceMachine& machine, std::span<const float> targets) const;

  /// Returns the places of a micro-batch's data from `first_row` on, and of the balance losses of the layer with
  /// experts that has that number.
  StageDataPlaces places_of(int microbatch, std::int64_t first_row, std::int64_t expert_layer) const;

  /// [micro-batch] summed losses in the last replay; zeros where the stage does not end the model.
  std::vector<double> losses(DeviceMachine& machine) const;
  /// [micro-batch] summed load-balancing losses; zeros where no layer has experts.
  std::vector<double> balance_losses(DeviceMachine& machine) const;

 private:
  std::int64_t sample_bytes() const;
  std::int64_t sample_target_elements() const;
  std::vector<double> sums_of_losses(DeviceMachine& machine, const float* losses, std::int64_t layers) const;

  Layer first_, last_;  // this rank's shares of the stage's first and last layer
  LayerWork work_;
  TensorSeat tensor_;
  std::optional<HalfFormat> half_;
  std::int64_t microbatches_, tokens_, expert_layers_;

  // On the device.
  std::int32_t* token_numbers_ = nullptr;   // [microbatches, T]
  std::int32_t* target_numbers_ = nullptr;  // [microbatches, T]
  std::byte* samples_ = nullptr;            // [microbatches, T, ...], as activations are stored
  float* sample_targets_ = nullptr;         // [microbatches, T, width]
  float* losses_ = nullptr;                 // [microbatches, T]
  float* balance_losses_ = nullptr;         // [expert layers, microbatches, T]
};

}}  // namespace plumb::executor
