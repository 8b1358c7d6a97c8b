#pragma once
// Settings in the form "python" (exchange/forms/settings_text.h).

#include <string>
#include <string_view>

#include "planner/exchange/forms/settings.h"

namespace plumb { inline namespace planner {

std::string python_text(const Settings& settings, std::string_view head);

Settings read_python(std::string_view text, const std::string& file);

}}  // namespace plumb::planner
