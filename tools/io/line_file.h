#pragma once
// A text file that is taken line by line, however long it is.

#include <functional>
#include <istream>
#include <string>
#include <string_view>

namespace plumb { inline namespace tools {

/// Calls take() with each line without its end, in order; a byte order mark and carriage returns before line ends are
/// dropped, and a packed file is unpacked on the way (gzip.h). Of a line longer than 1 MiB only that much is handed on.
/// Throws as InputStream does.
void read_lines(const std::string& path, const std::function<void(std::string_view line)>& take);
void read_lines(std::istream& file, const std::function<void(std::string_view line)>& take);

}}  // namespace plumb::tools
