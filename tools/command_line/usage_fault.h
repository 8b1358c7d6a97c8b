#pragma once
// A command line that cannot be read is refused in one sentence.

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace plumb { inline namespace tools {

/// Says what is wrong with a command line that `app` refused with `error`: a verb or an option that there is not, with
/// the nearest that there is, or else what the error says; and where help is. `words` are the arguments behind the
/// program's name.
std::string usage_fault(const CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& error);

}}  // namespace plumb::tools
