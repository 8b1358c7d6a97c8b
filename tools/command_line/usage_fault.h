#pragma once
// A command line that cannot be parsed is refused in one sentence.

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace plumb { inline namespace tools {

/// Returns the fault of a command line that `app` refused with `error`: a verb or an option that does not exist, with
/// the nearest one that does, or else the text of the error. The sentence ends with the command that prints the help.
/// `words` are the arguments behind the program's name.
std::string usage_fault(const CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& error);

}}  // namespace plumb::tools
