#include "schedules/forms/json_text.h"

#include <nlohmann/json.hpp>

namespace plumb { inline namespace schedules {
namespace {

constexpr int kOnOneLine = -1;

template <class Json>
std::string written(const Json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string json_line(const nlohmann::json& value) {
  return written(value, kOnOneLine);
}

std::string json_line(const nlohmann::ordered_json& value) {
  return written(value, kOnOneLine);
}

std::string json_answer(const nlohmann::ordered_json& document) {
  return written(document, 2) + "\n";
}

std::string json_file_text(const nlohmann::ordered_json& document) {
  return written(document, 1) + "\n";
}

}}  // namespace plumb::schedules
