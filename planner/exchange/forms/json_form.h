#pragma once
// Settings in the form "json" (exchange/forms/settings_text.h).

#include <string>
#include <string_view>

#include "planner/exchange/forms/settings.h"

namespace plumb { inline namespace planner {

std::string json_text(const Settings& settings, std::string_view head);

Settings read_json(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
