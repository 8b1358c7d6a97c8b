#pragma once
// The framework for which a prediction is made, as every header names it.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/price/pricing.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace tools {

/// Returns "stack nemo", "stack nemo, assumed: a device with fp8, as Hopper and later", or "Plumb's own executor".
std::string stack_text(const TrainingSpec& training);

/// Returns a note for each rule by which the layout's framework does not run it (planner/search/stack_conflict.h).
std::vector<std::string> stack_notes(const Pricing& pricing, const Layout& layout);

/// Adds `stack`, its name or null for Plumb's own executor, and `stack_assumed`, the reason or null.
void add_stack(nlohmann::ordered_json& answer, const TrainingSpec& training);

}}  // namespace plumb::tools
