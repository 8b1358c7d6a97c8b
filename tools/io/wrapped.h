#pragma once
// Text that is broken into lines at its blanks.

#include <string>
#include <string_view>

namespace plumb { inline namespace tools {

/// Returns the text in lines of at most `width` characters. The first one begins at `column`, and the others are
/// indented by so many blanks. A word that is longer than a line stands by itself; no line ends in a blank, and none
/// between a number and its unit.
std::string wrapped(std::string_view text, std::size_t width, std::size_t column);

/// Returns the lines with each that is longer than `width` wrapped at its own indentation.
std::string folded(std::string_view lines, std::size_t width);

}}  // namespace plumb::tools
