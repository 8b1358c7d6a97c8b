#pragma once
// A value of an answer that may not be known is null in JSON.

#include <optional>

#include <nlohmann/json.hpp>

namespace plumb { inline namespace tools {

template <typename Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}}  // namespace plumb::tools
