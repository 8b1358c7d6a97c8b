#pragma once
// One command for each verb that runs as it stands, or with files that the verbs before it wrote.

#include <string_view>

namespace plumb { inline namespace tools {

/// Returns the example of "plumb schedule show"; empty for a verb that has none.
std::string_view example_of(std::string_view verb);

}}  // namespace plumb::tools
