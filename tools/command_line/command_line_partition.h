#pragma once
// The options of `plumb partition`.

#include <functional>

namespace CLI {
class App;
}

namespace plumb { inline namespace tools {

/// Adds the verb; `chosen` runs it.
void add_partition(CLI::App& app, std::function<int()>& chosen);

}}  // namespace plumb::tools
