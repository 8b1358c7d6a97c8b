#pragma once
// What the verbs that run a plan share: making it runnable, and telling what came of it.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "executor/run.h"
#include "planner/search/plan.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

/// Throws InputError if the cpu backend is given no plan, or options that are the timed backend's alone.
void require_cpu_arguments(const RunArguments& arguments);

/// The plan's prediction with its timeline. Throws SpecError if the layout cannot exist.
Predicted runnable_prediction(const Plan& plan);

/// Throws SpecError if so many bytes, of all ranks together, are more than this machine's memory.
void require_room(double bytes);

/// The same for the cpu backend. Throws SpecError if all ranks together would take more than this machine's memory.
Predicted cpu_prediction(const Plan& plan);

/// The file's contents, or the text that the tool carries for an empty path.
std::string training_text(const std::string& path);

/// The path, or what the text that the tool carries is called.
std::string text_name(const std::string& path);

/// {"first_step" (done before, by a checkpoint), "losses", "step_times_s", "peak_memory_bytes", "peak_host_bytes", by
/// world rank "weight_bytes", "gradient_bytes" and "optimizer_bytes", "loss_scales" (by replay), "skipped_steps"}
nlohmann::ordered_json run_json(const RunResult& result);

}}  // namespace plumb::tools
