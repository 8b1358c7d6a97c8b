#include "planner/spec/preset_sources.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/error.h"
#include "schedules/forms/strict_json.h"

namespace plumb { inline namespace planner {
namespace {

/// Returns the dotted path of the first number below `json` that names no source; empty if all do.
std::string number_without_source(const nlohmann::json& json, const std::string& path) {
  if (json.is_number()) return path;
  if (!json.is_structured()) return "";
  if (json.is_object() && json.contains("value")) {
    const auto source = json.find("source");
    const bool named = source != json.end() && source->is_string() && !source->get<std::string>().empty();
    return named ? "" : path;
  }
  for (const auto& [key, value] : json.items()) {
    const std::string found = number_without_source(value, path.empty() ? key : path + "." + key);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace

ClusterSpec parse_cluster_preset(std::string_view text, const std::string& file) {
  const nlohmann::json document = parse_json(text, file);
  if (const std::string path = number_without_source(document, ""); !path.empty()) {
    throw SpecError(fmt::format(
        "{}: {} has no source: write {{\"value\": ..., \"source\": \"...\"}} and say where the number is published",
        file, path));
  }
  return cluster_from_json(document, file);
}

}}  // namespace plumb::planner
