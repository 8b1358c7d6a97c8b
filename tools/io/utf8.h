#pragma once
// Text is checked to be UTF-8, and made printable on a terminal.

#include <string>
#include <string_view>

namespace plumb { inline namespace tools {

/// Returns the position of the first byte that belongs to no UTF-8 character; npos if all do.
std::size_t first_invalid_utf8(std::string_view text);

/// Returns the text with '?' in place of each byte that is not UTF-8 and of each control character except tabs and line
/// breaks.
std::string printable(std::string_view text);

/// Returns the number of characters: the bytes that do not continue a UTF-8 sequence.
std::size_t width_of(std::string_view text);

}}  // namespace plumb::tools
