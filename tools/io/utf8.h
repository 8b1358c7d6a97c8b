#pragma once
// Text in UTF-8: what is none, and what may stand on a terminal.

#include <string>
#include <string_view>

namespace plumb { inline namespace tools {

/// The first byte that belongs to no UTF-8 character; npos if all do.
std::size_t first_invalid_utf8(std::string_view text);

/// The text with '?' in place of each byte that is no UTF-8 and of each control character but tabs and line breaks.
std::string printable(std::string_view text);

}}  // namespace plumb::tools
