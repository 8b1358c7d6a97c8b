#pragma once
// The manual page, made of the verbs' and options' definitions.

#include <string>

namespace CLI {
class App;
}

namespace plumb { inline namespace tools {

/// Returns the page of the whole tool in the language of man(7).
std::string manual_page(const CLI::App& app, const std::string& version);

}}  // namespace plumb::tools
