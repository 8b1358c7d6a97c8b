#pragma once
// The measured quantities of a published row, in SI units.

#include <cstdint>
#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/price/layer/model_flops.h"
#include "schedules/time.h"

namespace plumb { inline namespace planner {

struct MeasuredQuantities {
  std::optional<Seconds> step_time;
  std::optional<Seconds> layer_forward;           ///< forward of one transformer layer and micro-batch
  std::optional<Seconds> layer_backward;          ///< backward of it, with the recomputation
  std::optional<double> flops_per_device_second;  ///< where the source's way of counting is known
  std::optional<double> utilization;              ///< that rate as a share of the device's data sheet
  FlopsCount flops_count = FlopsCount::kModel;    ///< way of counting of both
  std::optional<double> peak_memory_bytes;        ///< peak of the rank that needs most
  std::optional<double> least_memory_bytes;       ///< peak of the rank that needs least
  std::vector<double> memory_by_rank_bytes;       ///< [rank of the world]; empty: not printed
  bool memory_of_device = false;                  ///< memory includes that of driver and runtime, like nvidia-smi's
  bool memory_of_last_rank = false;               ///< the peak is that of the last pipeline rank
  bool out_of_memory = false;                     ///< the run was tried and did not fit
};

/// Returns the quantities that `row` prints, and those that follow from them. A step's time comes from `step_time_s`,
/// `step_time_s_median`, `step_time_ms`, `derived.step_time_s`, or from a throughput (tokens, samples or sequences a
/// second, of all devices or of one) with the row's batch, sequence and devices.
///
/// Throughput in FLOP/s alone says nothing without the source's way of counting. Such a row needs its derived time, or
/// a mapping that names the count: that of the model ("flops_count": "model"), without attention's causal half
/// ("causal"), or with recomputation ("executed"). A utilization is a share of the data sheet's rate in the training's
/// precision, unless another rate is given ("mfu_peak_tflops": 312).
///
/// Memory keys end in their unit: gb (1e9 bytes), gib, mb (2^20 bytes, like PyTorch's reports), mib, bytes. A mapping
/// may give another size of a source's gb ("memory_gb_bytes": 1073741824), and say that its memory is the whole
/// device's ("memory_of": "device"), or that of the rank that logs, the last of the pipeline ("memory_of": "last
/// rank").
MeasuredQuantities measured_quantities(const nlohmann::json& row);

}}  // namespace plumb::planner
