#pragma once
// The verbs and options of the command line as data, for what reads them all: faults, help, completion, the manual.

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace plumb { inline namespace tools {

/// Returns the verbs under `app`, in the order in which they were added.
std::vector<const CLI::App*> verbs_of(const CLI::App& app);

/// Returns the verb of that name; null if there is none.
const CLI::App* verb_named(const CLI::App& app, const std::string& name);

/// Returns the name of a verb with its parents: "plumb schedule show".
std::string full_name(const CLI::App& app);

/// Returns the names of all options with their dashes.
std::vector<std::string> option_names(const CLI::App& app);

/// Returns the option with such a name; null if there is none.
const CLI::Option* option_named(const CLI::App& app, const std::string& name);

/// Returns the words that the option's value is one of; empty if it is something else.
std::vector<std::string> choices_of(const CLI::Option& option);

/// Returns what stands for the option's value: "time|cost", "NUMBER", "N", "TEXT"; empty for a flag.
std::string value_name(const CLI::Option& option);

}}  // namespace plumb::tools
