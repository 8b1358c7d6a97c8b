#include "tools/command_line/help_page.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/command_line/command_tree.h"
#include "tools/command_line/verb_examples.h"
#include "tools/io/wrapped.h"

namespace plumb { inline namespace tools {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kWidestName = 28;  ///< a longer name has its text on the next line

/// One line of a list, with what stands behind its name.
struct Entry {
  std::string name;
  std::string text;
};

std::string entries_text(const std::vector<Entry>& entries, std::size_t width) {
  std::size_t widest = 0;
  for (const Entry& entry : entries)
    if (entry.name.size() <= kWidestName) widest = std::max(widest, entry.name.size());
  const std::size_t column = kIndent + widest + 2;
  std::string text;
  for (const Entry& entry : entries) {
    const std::string begin = std::string(kIndent, ' ') + entry.name;
    const bool fits = entry.name.size() <= widest;
    text += fits ? begin + std::string(column - begin.size(), ' ') : begin + "\n" + std::string(column, ' ');
    text += wrapped(entry.text, width, column) + "\n";
  }
  return text;
}

/// The library keeps defaults that stand for "not given", too; the option's text says what then holds.
bool says_default(const CLI::Option& option) {
  const std::string value = option.get_default_str();
  const bool is_nothing = value.empty() || value == "0" || value == "[]" || value == "\"\"" || value == "false";
  return !is_nothing && option.get_expected_max() != 0 && option.get_description().find("default") == std::string::npos;
}

Entry entry_of(const CLI::Option& option) {
  std::string name = option.get_positional() ? option.get_name(true) : option.get_name();
  if (const std::string value = value_name(option); !option.get_positional() && !value.empty()) name += " " + value;
  std::string text = option.get_description();
  if (option.get_required() && !option.get_positional()) text += " (required)";
  if (says_default(option)) text += fmt::format(" (default: {})", option.get_default_str());
  return {std::move(name), std::move(text)};
}

std::string usage_of(const CLI::App& app) {
  std::string text = "usage: " + full_name(app);
  if (!verbs_of(app).empty()) return text + " VERB ...";
  for (const CLI::Option* option : app.get_options()) {
    const std::string value = value_name(*option);
    if (option->get_positional()) {
      const std::string name = option->get_name(true);
      const std::string many = option->get_expected_max() > 1 ? "..." : "";
      text += option->get_required() ? fmt::format(" {}{}", name, many) : fmt::format(" [{}{}]", name, many);
    } else if (option->get_required()) {
      text += fmt::format(" {} {}", option->get_name(), value);
    }
  }
  return text + " [OPTIONS]";
}

}  // namespace

std::string help_page(const CLI::App& app, int terminal_width) {
  const std::size_t width = std::max<std::size_t>(60, static_cast<std::size_t>(std::max(0, terminal_width)));
  std::string text = wrapped(app.get_description(), width, 0) + "\n" + wrapped(usage_of(app), width, 7) + "\n";
  const std::string name = full_name(app);
  constexpr std::string_view kExample = "example: ";
  if (const std::string_view example = example_of(name); !example.empty())
    text += fmt::format("{}{}\n", kExample, wrapped(example, width, kExample.size()));
  std::vector<Entry> entries;
  const auto list = [&](const std::string& title) {
    if (!entries.empty()) text += fmt::format("\n{}:\n{}", title, entries_text(entries, width));
    entries.clear();
  };
  for (const CLI::App* verb : verbs_of(app))
    if (!verb->get_group().empty()) entries.push_back({verb->get_name(), verb->get_description()});
  list("verbs");
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional()) entries.push_back(entry_of(*option));
  list("arguments");
  for (const std::string& group : app.get_groups()) {
    for (const CLI::Option* option : app.get_options())
      if (!option->get_positional() && option->get_group() == group) entries.push_back(entry_of(*option));
    list(group == "Options" ? "options" : group);
  }
  if (!app.get_footer().empty()) text += "\n" + wrapped(app.get_footer(), width, 0) + "\n";
  return text;
}

}}  // namespace plumb::tools
