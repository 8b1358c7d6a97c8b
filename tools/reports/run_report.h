#pragma once
// Says what a run on hardware has found: the time and the loss of each step.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "executor/training/run_result.h"

namespace plumb { inline namespace tools {

/// Returns {"first_step" (steps that a checkpoint has done), "losses", "step_times_s", "peak_memory_bytes",
/// "peak_host_bytes", by world rank "weight_bytes", "gradient_bytes" and "optimizer_bytes", "loss_scales" (by replay),
/// "skipped_steps"}.
nlohmann::ordered_json run_json(const RunResult& result);

/// Returns a line with the median step and the losses, and a table of the steps. The losses of the training on one rank
/// stand beside them where there is one. An asynchronous training has several losses a step, and no times of their own.
std::string run_text(std::string_view title, std::string_view device, const RunResult& result,
                     const RunResult* on_one_rank);

/// Returns a line with the median of the steps beside the predicted time, and a table of the steps.
std::string clocked_text(std::string_view title, std::string_view ranks, const std::vector<Seconds>& steps,
                         Seconds predicted);

}}  // namespace plumb::tools
