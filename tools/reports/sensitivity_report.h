#pragma once
// The sensitivities of a step's time, as JSON and as text.

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/search/resource_sensitivity.h"
#include "simulator/network/conditioning.h"
#include "simulator/path/sensitivity.h"

namespace plumb { inline namespace tools {

/// Returns the parts of the makespan by the quantity that they grow with, which add up to the makespan; the parts by
/// collective and by link; and the sensitivities to the cluster's figures (null where there are none).
nlohmann::ordered_json sensitivity_json(const Sensitivity& sensitivity,
                                        const std::vector<ResourceSensitivity>& by_resource);

/// Returns {"number", "most", "is_ill", "step_with_noise"}; the last is null for a well-conditioned step.
nlohmann::ordered_json conditioning_json(const Conditioning& conditioning);

/// Returns the text that replaces the sensitivities of an ill-conditioned step: "no sensitivities: ..." and the spread
/// of the step's time.
std::string conditioning_text(const Conditioning& conditioning, const std::function<std::string(SimTime)>& time);

/// Returns the figures by the size of their effect, the largest first.
std::vector<ResourceSensitivity> by_size(std::vector<ResourceSensitivity> by_resource);

/// Returns what the step's time depends on most, and what 1 % of it is worth: figures of the cluster where they are known,
/// as in "what binds: device.peak_tflops (1 % more makes the step 0.860 % shorter, 100 ms)", and otherwise the parts of
/// the step. `time` writes seconds.
std::string binding_text(const Sensitivity& sensitivity, const std::vector<ResourceSensitivity>& by_resource,
                         SimTime makespan, const std::function<std::string(double)>& time);

/// Returns "each 1 % longer makes the step longer by: ..." and, where figures are known, "1 % more of each changes the
/// step by: ...".
std::string sensitivity_text(const Sensitivity& sensitivity, const std::vector<ResourceSensitivity>& by_resource,
                             SimTime makespan);

}}  // namespace plumb::tools
