#pragma once
// Lines and values that the forms with lines share.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace plumb { inline namespace planner {

/// A line with something on it, without comment and blanks behind it.
struct SettingsLine {
  std::string_view text;  ///< with the blanks before it
  int number = 0;         ///< counted from 1
};

/// Returns the lines. A comment begins with # outside of quotes, at the line's begin or behind a blank.
std::vector<SettingsLine> settings_lines(std::string_view text);

/// Throws SpecError "FILE:LINE: ...".
[[noreturn]] void fail_at(const std::string& file, int line, const std::string& message);

/// Words that a form has for true, false and nothing.
struct ValueWords {
  std::vector<std::string_view> yes, no, nothing;
  bool bare_words = false;   ///< a text needs no quotes
  bool expressions = false;  ///< a value of any other kind is its text
};

/// Reads a number, a text, a list in brackets, or one of the words. Throws as fail_at for another value.
nlohmann::json read_value(std::string_view text, const ValueWords& words, const std::string& file, int line);

}}  // namespace plumb::planner
