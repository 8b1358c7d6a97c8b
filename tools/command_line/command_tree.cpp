#include "tools/command_line/command_tree.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

namespace plumb { inline namespace tools {

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_name().empty(); });
}

const CLI::App* verb_named(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> verbs = verbs_of(app);
  const auto found = std::ranges::find(verbs, name, &CLI::App::get_name);
  return found == verbs.end() ? nullptr : *found;
}

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : fmt::format("{} {}", full_name(*parent), app.get_name());
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

const CLI::Option* option_named(const CLI::App& app, const std::string& name) {
  for (const CLI::Option* option : app.get_options()) {
    if (name.starts_with("--") ? option->check_lname(name.substr(2))
                               : name.size() == 2 && name[0] == '-' && option->check_sname(name.substr(1)))
      return option;
  }
  return nullptr;
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();  // "TEXT:{time,cost}"
  const std::size_t open = type.find('{'), close = type.rfind('}');
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos) return choices;
  for (std::size_t at = open + 1; at < close;) {
    const std::size_t end = std::min(type.find(',', at), close);
    choices.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return choices;
}

std::string value_name(const CLI::Option& option) {
  if (option.get_expected_max() == 0) return "";
  if (const std::vector<std::string> choices = choices_of(option); !choices.empty())
    return fmt::format("{}", fmt::join(choices, "|"));
  const std::string type = option.get_type_name();
  if (type.starts_with('[')) return type;
  return type.starts_with("FLOAT") ? "NUMBER" : type.starts_with("INT") || type.starts_with("UINT") ? "N" : "TEXT";
}

}}  // namespace plumb::tools
