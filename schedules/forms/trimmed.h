#pragma once
// Removes the blanks around a text.

#include <string_view>

namespace plumb { inline namespace schedules {

/// The characters that separate words on a line; a carriage return is the rest of a foreign line end.
inline constexpr std::string_view kBlanks = " \t\r";

/// Returns `text` without the `blanks` at its ends: trimmed("  0F0\t") is "0F0".
inline std::string_view trimmed(std::string_view text, std::string_view blanks = kBlanks) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}}  // namespace plumb::schedules
