#pragma once
// Completion of a command line in bash and zsh. The scripts ask the tool itself (`plumb complete`), so that they know
// every verb, option and preset of the binary that is called.

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace plumb { inline namespace tools {

/// Returns the words with which the last of `words` may go on, ascending; empty: it is a file, or anything. `words` are
/// those behind the program's name.
std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words);

/// Returns the script for "bash" or "zsh".
std::string_view completion_script(std::string_view shell);

}}  // namespace plumb::tools
