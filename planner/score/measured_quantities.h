#pragma once
// What a published row says was measured, in SI units.

#include <cstdint>
#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/price/layer/model_flops.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct MeasuredQuantities {
  std::optional<Seconds> step_time;
  std::optional<Seconds> layer_forward;           ///< of one transformer layer and micro-batch
  std::optional<Seconds> layer_backward;          ///< the same, with what it recomputes
  std::optional<double> flops_per_device_second;  ///< where it is known what the source counts
  std::optional<double> utilization;              ///< the same as a share of the device's data sheet
  FlopsCount flops_count = FlopsCount::kModel;    ///< what both count
  std::optional<double> peak_memory_bytes;        ///< of the rank that needs most
  std::optional<double> least_memory_bytes;       ///< of the rank whose peak is the lowest
  std::vector<double> memory_by_rank_bytes;       ///< [rank of the world]; empty: not printed
  bool memory_of_device = false;                  ///< with what driver and runtime take, as nvidia-smi prints it
  bool memory_of_last_rank = false;               ///< the peak is that of the last pipeline rank
  bool out_of_memory = false;                     ///< the run was tried and did not fit
};

/// What `row` prints, or what follows from it: a step's time from `step_time_s`, `step_time_s_median`, `step_time_ms`,
/// `derived.step_time_s`, or from a throughput (tokens, samples or sequences a second, of all devices or of one) with
/// the row's batch, sequence and devices. Throughput that is printed in FLOP/s only says nothing without the source's
/// way of counting: such a row needs its derived time, or a mapping that says that they are the model's ("flops_count":
/// "model"), without attention's causal half ("causal"), or with
/// what layers recompute ("executed"); a utilization is a share of the data sheet's rate in the training's precision,
/// unless another is said ("mfu_peak_tflops": 312). Memory keys end in their unit: gb (1e9 bytes), gib, mb (2^20 bytes,
/// as PyTorch's reports have it), mib, bytes. A mapping may say that a source's gb are others ("memory_gb_bytes":
/// 1073741824), and that its memory is the whole device's ("memory_of": "device"), or that of the rank that logs, the
/// last of the pipeline ("memory_of": "last rank").
MeasuredQuantities measured_quantities(const nlohmann::json& row);

}}  // namespace plumb::planner
