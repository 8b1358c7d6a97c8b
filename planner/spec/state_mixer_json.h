#pragma once
// The JSON form of a state mixer (kernels/layer/kinds.h): an object of its sizes by their names there, under "mamba2",
// "mamba" or "delta_net".

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "kernels/layer.h"
#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {

/// Returns the model's state mixer, empty where it has none. Throws SpecError with the place: two mixers, an unknown or
/// missing key, a size out of range, heads that groups or key heads do not divide.
StateMixer state_mixer_from_json(const nlohmann::json& model, StrictObject& object, const std::string& place);

/// Adds the mixer under its key; nothing if it is empty.
void add_state_mixer(nlohmann::ordered_json& model, const StateMixer& mixer);

}}  // namespace plumb::planner
