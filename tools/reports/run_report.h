#pragma once
// `plumb run --json` and `validate --json` print the results of a run on hardware.

#include <nlohmann/json_fwd.hpp>

#include "executor/training/run_result.h"

namespace plumb { inline namespace tools {

/// Returns {"first_step" (steps that a checkpoint has done), "losses", "step_times_s", "peak_memory_bytes",
/// "peak_host_bytes", by world rank "weight_bytes", "gradient_bytes" and "optimizer_bytes", "loss_scales" (by replay),
/// "skipped_steps"}.
nlohmann::ordered_json run_json(const RunResult& result);

}}  // namespace plumb::tools
