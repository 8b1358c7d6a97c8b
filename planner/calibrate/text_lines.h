#pragma once
// Lines and words of a log, with the numbers to name them by.

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace plumb {

/// Without line ends; a carriage return before one is dropped too.
std::vector<std::string_view> lines_of(std::string_view text);

/// What blanks and tabs separate.
std::vector<std::string_view> words_of(std::string_view line);

/// What `separator` separates, without blanks around it.
std::vector<std::string_view> cells_of(std::string_view line, char separator);

/// The number that all of `text` is, or nothing.
template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The number that stands behind the first `key` of the line, blanks between them; thousands may have commas. Nothing
/// if there is no key or no number behind it.
std::optional<double> number_behind(std::string_view line, std::string_view key);

}  // namespace plumb
