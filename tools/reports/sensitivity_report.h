#pragma once
// What a step's time is made of and how it grows, as JSON and as text.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/search/resource_sensitivity.h"
#include "simulator/sensitivity.h"

namespace plumb { inline namespace tools {

/// Keys of what the makespan grows with, which together are the makespan; the same in detail by collective and by link;
/// and by the cluster's figures (null where there are none).
nlohmann::ordered_json sensitivity_json(const Sensitivity& sensitivity,
                                        const std::vector<ResourceSensitivity>& by_resource);

/// "each 1 % longer makes the step longer by: ..." and, where figures are known, "1 % more of a figure changes the step
/// by: ...".
std::string sensitivity_text(const Sensitivity& sensitivity, const std::vector<ResourceSensitivity>& by_resource,
                             SimTime makespan);

}}  // namespace plumb::tools
