#pragma once

#include <string>

namespace plumb { inline namespace tools {

/// "plumb 0.1.0" and a line for each optional part: built in, or how to get it.
std::string version_text();

}}  // namespace plumb::tools
