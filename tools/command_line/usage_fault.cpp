#include "tools/command_line/usage_fault.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "schedules/nearest_name.h"
#include "tools/command_line/command_tree.h"

namespace plumb { inline namespace tools {
namespace {

bool has_option(const CLI::App& app, const std::string& name) {
  return option_named(app, name) != nullptr;
}

/// Appends the verbs, at any depth, that have an option of that name.
void collect_verbs_with(const CLI::App& app, const std::string& option, std::vector<std::string>& found) {
  if (has_option(app, option)) found.push_back(full_name(app));
  for (const CLI::App* verb : verbs_of(app)) collect_verbs_with(*verb, option, found);
}

/// Returns true if the word is an option; "-4" is a value.
bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0 && word[1] != '.';
}

/// Returns the option that a word begins with: "--seq" of "--seq=8", "-p" of "-p4".
std::string option_of(const CLI::App& app, const std::string& word) {
  if (word.starts_with("--")) return word.substr(0, word.find('='));
  const std::string letter = word.substr(0, 2);
  return has_option(app, letter) ? letter : word;
}

std::string unknown_option(const CLI::App& root, const CLI::App& app, const std::string& option) {
  const std::string nearest = nearest_name(option, option_names(app));
  std::vector<std::string> others;
  collect_verbs_with(root, option, others);
  const std::string remedy = !nearest.empty()  ? fmt::format("did you mean \"{}\"?", nearest)
                             : !others.empty() ? fmt::format("`{}` has one", others.front())
                                               : "leave it away";
  return fmt::format("`{}` has no option {}: {}", full_name(app), option, remedy);
}

/// Returns the text of the option library, or a better one where its own is poor.
std::string fault_of_library(const std::string& said) {
  const auto behind = [&said](std::string_view start) { return said.substr(start.size()); };
  constexpr std::string_view kUnread = "Could not convert: ", kUnknown = "The following argument was not expected: ",
                             kUnknowns = "The following arguments were not expected: ";
  if (said.starts_with(kUnread)) return fmt::format("{}: this value is not one that it takes", behind(kUnread));
  if (said.starts_with(kUnknown)) return fmt::format("\"{}\" is one too many: leave it away", behind(kUnknown));
  if (said.starts_with(kUnknowns)) return fmt::format("\"{}\" are too many: leave them away", behind(kUnknowns));
  if (said.starts_with("A subcommand is required")) return "a verb is wanted";
  const std::string option = said.substr(0, said.find(": "));
  if (said.find(": At Most ") != std::string::npos) return fmt::format("{} is given more often than once", option);
  if (said.find(" required ") != std::string::npos && said.ends_with(" missing"))
    return fmt::format("{} has no value: give one", option);
  return said;
}

}  // namespace

std::string usage_fault(const CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& error) {
  const CLI::App* verb = &app;
  std::string what;
  for (const std::string& word : words) {
    if (word == "--") break;
    if (is_option(word)) {
      const std::string option = option_of(*verb, word);
      if (!has_option(*verb, option)) what = unknown_option(app, *verb, option);
    } else if (!verbs_of(*verb).empty()) {
      const CLI::App* next = verb_named(*verb, word);
      if (next == nullptr) {
        std::vector<std::string> names;
        for (const CLI::App* known : verbs_of(*verb)) names.push_back(known->get_name());
        what = fmt::format("`{}` has no verb \"{}\": {}", full_name(*verb), word, did_you_mean(word, names));
      } else {
        verb = next;
      }
    }
    if (!what.empty()) break;
  }
  if (what.empty()) what = fault_of_library(error.what());
  return fmt::format("{}; `{} --help` says what there is", what, full_name(*verb));
}

}}  // namespace plumb::tools
