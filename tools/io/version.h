#pragma once

#include <string>

namespace plumb { inline namespace tools {

/// Returns "plumb 0.1.0" and a line for each optional part, which is built in or not; then the line says how to get it.
std::string version_text();

}}  // namespace plumb::tools
