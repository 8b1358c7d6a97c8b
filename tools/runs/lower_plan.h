#pragma once
// A plan becomes the spec of a run; this file is the only bridge between planner and executor.

#include <cstdint>
#include <optional>
#include <string>

#include "executor/spec/run_spec.h"
#include "planner/evaluate/evaluation.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace tools {

/// Returns the attention over context ranks that is named "ring" or "ulysses". Throws UsageError for another name.
ContextAttention context_attention(const std::string& name);

struct RunSettings {
  int steps = 1;
  std::uint64_t seed = 1;
  std::string text;       ///< the bytes to train on
  std::string text_name;  ///< their file
  ContextAttention context_attention = ContextAttention::kRing;
  double clip_norm = 0;            ///< largest norm of the gradients; 0: they are not clipped
  bool offload_optimizer = false;  ///< also where the plan does not say so
  /// ZeRO 2 and 3 go layer by layer, as plans without a device's calibration are priced (planner/price/memory).
  bool layerwise = false;
};

/// Returns the spec that replays exactly the schedule that was simulated; `evaluation` is the plan's. Throws SpecError
/// with the part of the plan that the cpu backend does not run: a layer graph that is no chain of the
/// executor's layers, experts divided otherwise than over the tensor group, tf32, fp8, or gradients that are not in
/// fp32.
RunSpec lower_plan(const Plan& plan, const Evaluation& evaluation, const RunSettings& settings);

/// Returns the 16-bit format that stores tensors of a precision, or nothing for fp32.
std::optional<HalfFormat> half_format(Precision precision);

/// Returns the executor's optimizer, with its default numbers.
OptimizerSettings optimizer_settings(Optimizer optimizer);

/// Returns `spec` with another schedule than its plan's: `order` is the compute order and `lowered` the lowered
/// schedule. The model is partitioned anew if the number of its parts changes. Throws ScheduleError if ranks or
/// micro-batches are not the plan's, and SpecError if the model has too few layers.
RunSpec with_schedule(RunSpec spec, const Plan& plan, const Schedule& order, const Schedule& lowered);

}}  // namespace plumb::tools
