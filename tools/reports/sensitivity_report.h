#pragma once
// What a step's time is made of and how it grows, as JSON and as text.

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/search/resource_sensitivity.h"
#include "simulator/network/conditioning.h"
#include "simulator/path/sensitivity.h"

namespace plumb { inline namespace tools {

/// Keys of what the makespan grows with, which together are the makespan; the same in detail by collective and by link;
/// and by the cluster's figures (null where there are none).
nlohmann::ordered_json sensitivity_json(const Sensitivity& sensitivity,
                                        const std::vector<ResourceSensitivity>& by_resource);

/// {"number", "most", "is_ill", "step_with_noise"}; the last is null of a well-conditioned step.
nlohmann::ordered_json conditioning_json(const Conditioning& conditioning);

/// Stands in place of the sensitivities of an ill-conditioned step: "no sensitivities: ..." and how the step spreads.
std::string conditioning_text(const Conditioning& conditioning, const std::function<std::string(SimTime)>& time);

/// "each 1 % longer makes the step longer by: ..." and, where figures are known, "1 % more of a figure changes the step
/// by: ...".
std::string sensitivity_text(const Sensitivity& sensitivity, const std::vector<ResourceSensitivity>& by_resource,
                             SimTime makespan);

}}  // namespace plumb::tools
