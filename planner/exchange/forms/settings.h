#pragma once
// The settings of a trainer: keys, with dots where a file nests them, and their values, in the order of the file.

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace plumb { inline namespace planner {

using Settings = std::vector<std::pair<std::string, nlohmann::json>>;

}}  // namespace plumb::planner
