#pragma once
// The options of `plumb score`.

#include <functional>

namespace CLI {
class App;
}

namespace plumb { inline namespace tools {

/// Adds the verb; `chosen` runs it.
void add_score(CLI::App& app, std::function<int()>& chosen);

}}  // namespace plumb::tools
