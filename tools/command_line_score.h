#pragma once
// The options of `plumb score`.

#include <functional>

#include <CLI/CLI.hpp>

namespace plumb { inline namespace tools {

/// Adds the verb; `chosen` runs it.
void add_score(CLI::App& app, std::function<int()>& chosen);

}}  // namespace plumb::tools
