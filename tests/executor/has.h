#pragma once

#include <string>
#include <string_view>

namespace plumb::test {

/// Returns true if `text` contains `part`.
inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace plumb::test
