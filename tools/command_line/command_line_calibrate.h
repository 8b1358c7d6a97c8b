#pragma once
// The options of `plumb calibrate`.

#include <functional>

namespace CLI {
class App;
}

namespace plumb { inline namespace tools {

/// Adds the verb; `chosen` runs it.
void add_calibrate(CLI::App& app, std::function<int()>& chosen);

}}  // namespace plumb::tools
