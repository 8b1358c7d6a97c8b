#include "planner/exchange/forms/json_form.h"

#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {
namespace {

void flatten(const nlohmann::json& object, const std::string& path, Settings& settings) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object()) {
      flatten(value, path + key + ".", settings);
    } else {
      settings.emplace_back(path + key, value);
    }
  }
}

}  // namespace

std::string json_text(const Settings& settings, std::string_view /*head: JSON has no comments*/) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (const auto& [path, value] : settings) {
    nlohmann::ordered_json* place = &document;
    std::string_view rest = path;
    for (std::size_t dot; (dot = rest.find('.')) != std::string_view::npos; rest.remove_prefix(dot + 1))
      place = &(*place)[std::string(rest.substr(0, dot))];
    (*place)[std::string(rest)] = value;
  }
  return json_answer(document);
}

Settings read_json(std::string_view text, const std::string& file) {
  const nlohmann::json document = parse_json(text, file);
  if (!document.is_object()) throw SpecError(file + ": these are no settings: give an object");
  Settings settings;
  flatten(document, "", settings);
  return settings;
}

}}  // namespace plumb::planner
