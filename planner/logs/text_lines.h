#pragma once
// Lines and words of a log, and errors that name them by number.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plumb { inline namespace planner {

/// Returns the lines without line ends; a carriage return before one is dropped too.
std::vector<std::string_view> lines_of(std::string_view text);

/// Returns the words that blanks and tabs separate.
std::vector<std::string_view> words_of(std::string_view line);

/// Returns the cells that `separator` separates, without blanks around them.
std::vector<std::string_view> cells_of(std::string_view line, char separator);

/// Throws SpecError with the place of a line that is counted from 0.
[[noreturn]] void fail_at_line(const std::string& file, std::size_t line, const std::string& message);

/// Returns the number that stands behind the first `key` of the line, blanks between them; thousands may have commas.
/// Returns nothing if there is no key or no number behind it.
std::optional<double> number_behind(std::string_view line, std::string_view key);

}}  // namespace plumb::planner
