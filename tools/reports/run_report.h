#pragma once
// `plumb run --json` and `validate --json` print what a run on hardware came to.

#include <nlohmann/json_fwd.hpp>

#include "executor/run_result.h"

namespace plumb { inline namespace tools {

/// {"first_step" (done before, by a checkpoint), "losses", "step_times_s", "peak_memory_bytes", "peak_host_bytes", by
/// world rank "weight_bytes", "gradient_bytes" and "optimizer_bytes", "loss_scales" (by replay), "skipped_steps"}
nlohmann::ordered_json run_json(const RunResult& result);

}}  // namespace plumb::tools
