#include "schedules/forms/form_record.h"

#include <algorithm>

#include <fmt/format.h>

namespace plumb { inline namespace schedules {
namespace {

using Json = nlohmann::ordered_json;

thread_local FormRecord* current_record = nullptr;

/// Returns "nodes[].size" for "FILE: nodes[3].size", and "" for "FILE".
std::string path_of(std::string_view place) {
  const std::size_t end_of_file = place.find(": ");
  if (end_of_file == std::string_view::npos) return "";
  std::string path;
  bool is_number = false;
  for (const char c : place.substr(end_of_file + 2)) {
    if (c == ']') is_number = false;
    if (!is_number) path += c;
    if (c == '[') is_number = true;
  }
  return path;
}

/// Returns true for the schema of a number that was read.
bool is_number(const Json& form) {
  return form.contains("maximum");
}

/// Returns the name of a number's definition: "integer_from_1_to_16777216", "number_above_0.0_to_1e+30".
std::string definition_name(const Json& number) {
  const bool is_from = number.contains("minimum");
  return fmt::format("{}_{}_{}_to_{}", number["type"].get<std::string>(), is_from ? "from" : "above",
                     number[is_from ? "minimum" : "exclusiveMinimum"].dump(), number["maximum"].dump());
}

/// Returns the schema of a number that may stand beside its source.
Json sourced(const Json& number) {
  const Json beside{{"type", "object"},
                    {"required", {"value"}},
                    {"properties", {{"value", number}, {"source", {{"type", "string"}}}}},
                    {"additionalProperties", false}};
  return {{"anyOf", Json::array({number, beside})}};
}

Json nullable(Json schema) {
  return {{"anyOf", Json::array({std::move(schema), Json{{"type", "null"}}})}};
}

}  // namespace

const Json FormRecord::kObject = {{"reader", "object"}};
const Json FormRecord::kObjects = {{"reader", "objects"}};
const Json FormRecord::kAnything = {{"reader", "anything"}};

FormRecord::Scope::Scope(FormRecord& record) : before_(current_record) {
  current_record = &record;
}

FormRecord::Scope::~Scope() {
  current_record = before_;
}

FormRecord* FormRecord::current() {
  return current_record;
}

void FormRecord::object_opened(std::string_view place, const void* object) {
  const std::string path = path_of(place);
  if (path.empty()) ++document_;
  objects_[path].opened.emplace(document_, object);
}

void FormRecord::object_finished(std::string_view place) {
  objects_[path_of(place)].is_finished = true;
}

void FormRecord::key_may_be_absent(std::string_view place, std::string_view key) {
  objects_[path_of(place)].keys[std::string(key)].optional = true;
}

void FormRecord::key_read(std::string_view place, const void* object, std::string_view key, const Json& form) {
  KeyForm& known = objects_[path_of(place)].keys[std::string(key)];
  known.readers.emplace(document_, object);
  if (std::ranges::find(known.forms, form) == known.forms.end()) known.forms.push_back(form);
}

Json FormRecord::key_schema(const std::string& path, const KeyForm& key) const {
  const std::string entries = path + "[]";
  Json options = Json::array();
  const auto offer = [&options](Json schema) {
    if (std::ranges::find(options, schema) == options.end()) options.push_back(std::move(schema));
  };
  for (const Json& form : key.forms) {
    const bool is_anything = form == kAnything;
    if (form == kObject || (is_anything && objects_.contains(path)))
      offer(object_schema(path));
    else if (form == kObjects || (is_anything && objects_.contains(entries)))
      offer({{"type", "array"}, {"items", objects_.contains(entries) ? object_schema(entries) : Json::object()}});
    else if (is_number(form))
      offer({{"$ref", "#/$defs/" + definition_name(form)}});
    else if (!is_anything)
      offer(form);
  }
  if (options.empty()) return Json::object();
  Json schema = options.size() == 1 ? options.front() : Json{{"anyOf", options}};
  return key.optional ? nullable(std::move(schema)) : schema;
}

Json FormRecord::object_schema(const std::string& path) const {
  const ObjectForm& object = objects_.at(path);
  Json required = Json::array(), properties = Json::object();
  bool is_map = !object.is_finished && !object.keys.empty();
  for (const auto& [name, key] : object.keys) {
    if (!key.optional && key.readers == object.opened) required.push_back(name);
    properties[name] = key_schema(path.empty() ? name : fmt::format("{}.{}", path, name), key);
    is_map = is_map && properties[name] == properties.front();
  }
  Json schema{{"type", "object"}};
  if (is_map) {
    schema["additionalProperties"] = properties.front();
    return schema;
  }
  if (!required.empty()) schema["required"] = required;
  schema["properties"] = properties;
  if (object.is_finished) schema["additionalProperties"] = false;
  return schema;
}

Json FormRecord::schema(std::string_view title) const {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  schema.update(object_schema(""));
  std::map<std::string, Json> numbers;
  for (const auto& [path, object] : objects_) {
    for (const auto& [name, key] : object.keys) {
      for (const Json& form : key.forms) {
        if (is_number(form)) numbers[definition_name(form)] = sourced(form);
      }
    }
  }
  for (const auto& [name, number] : numbers) schema["$defs"][name] = number;
  return schema;
}

}}  // namespace plumb::schedules
