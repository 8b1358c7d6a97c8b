#pragma once
// The framework for which a prediction is made, as every header names it.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planner/spec/training_spec.h"

namespace plumb { inline namespace tools {

/// Returns "stack nemo", "stack nemo, assumed: a device with fp8, as Hopper and later", or "Plumb's own executor".
std::string stack_text(const TrainingSpec& training);

/// Adds `stack`, its name or null for Plumb's own executor, and `stack_assumed`, the reason or null.
void add_stack(nlohmann::ordered_json& answer, const TrainingSpec& training);

}}  // namespace plumb::tools
