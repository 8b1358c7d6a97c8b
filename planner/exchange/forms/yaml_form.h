#pragma once
// Settings in the form "yaml" (exchange/forms/settings_text.h).

#include <string>
#include <string_view>

#include "planner/exchange/forms/settings.h"

namespace plumb { inline namespace planner {

std::string yaml_text(const Settings& settings, std::string_view head);

Settings read_yaml(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
