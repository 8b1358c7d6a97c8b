#include "planner/exchange/forms/plain_value.h"

#include <nlohmann/json.hpp>

#include "schedules/forms/json_text.h"
#include "schedules/forms/whole_number.h"

namespace plumb { inline namespace planner {

std::string plain_text(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : json_line(value);
}

nlohmann::json plain_value(std::string_view text) {
  if (text == "true" || text == "false") return text == "true";
  if (text == "null") return {};
  if (const auto number = whole_number<std::int64_t>(text)) return *number;
  if (const auto number = whole_number<double>(text)) return *number;
  return std::string(text);
}

}}  // namespace plumb::planner
