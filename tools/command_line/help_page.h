#pragma once
// The page that `plumb VERB --help` and `plumb help VERB` print.

#include <string>

namespace CLI {
class App;
}

namespace plumb { inline namespace tools {

/// Returns what the verb does, how it is called, an example, and its verbs or its options by group, each with its
/// values and its default. No line is wider than `width`, of which at least 60 columns are taken.
std::string help_page(const CLI::App& app, int width);

}}  // namespace plumb::tools
