#pragma once
// From a plan to what the executor runs: the only bridge between planner and executor.

#include <cstdint>
#include <optional>
#include <string>

#include "executor/run_spec.h"
#include "planner/evaluate/evaluation.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace tools {

/// "ring" or "ulysses". Throws InputError otherwise.
ContextAttention context_attention(const std::string& name);

struct RunSettings {
  int steps = 1;
  std::uint64_t seed = 1;
  std::string text;       ///< the bytes to train on
  std::string text_name;  ///< their file
  ContextAttention context_attention = ContextAttention::kRing;
  double clip_norm = 0;            ///< of the gradients; 0: not clipped
  bool offload_optimizer = false;  ///< also where the plan does not say so
};

/// The spec that replays exactly the schedule that was simulated (`evaluation` is the plan's).
/// Throws SpecError naming what the cpu backend does not run: experts divided otherwise than over the tensor group,
/// tf32, fp8, gradients that are not in fp32.
RunSpec lower_plan(const Plan& plan, const Evaluation& evaluation, const RunSettings& settings);

/// What tensors of a precision are stored in; none: fp32.
std::optional<HalfFormat> half_format(Precision precision);

/// The executor's form of an optimizer, with its own numbers.
OptimizerSettings optimizer_settings(Optimizer optimizer);

/// `spec` with another schedule (its compute order, and lowered) than its plan's: the model is cut anew where the
/// number of its parts changes. Throws ScheduleError if ranks or micro-batches are not the plan's, SpecError if the
/// model has too few layers.
RunSpec with_schedule(RunSpec spec, const Plan& plan, const Schedule& order, const Schedule& lowered);

}}  // namespace plumb::tools
