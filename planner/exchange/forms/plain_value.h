#pragma once
// Values as people write them in tables and on command lines: without quotes.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace plumb { inline namespace planner {

/// Returns true, 8, full: a text stands without quotes.
std::string plain_text(const nlohmann::json& value);

/// Returns the inverse of plain_text(): what reads as a number, true, false or null is that, and all else a text.
nlohmann::json plain_value(std::string_view text);

}}  // namespace plumb::planner
