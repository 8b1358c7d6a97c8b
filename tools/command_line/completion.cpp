#include "tools/command_line/completion.h"

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>

#include <CLI/CLI.hpp>

#include "schedules/generators/catalogue.h"
#include "tools/command_line/command_tree.h"
#include "tools/inputs/presets.h"
#include "tools/inputs/target_input.h"

namespace plumb { inline namespace tools {
namespace {

using Words = std::vector<std::string>;

Words presets_of(Preset::Kind kind) {
  Words names;
  for (const Preset& preset : presets())
    if (preset.kind == kind) names.emplace_back(preset.name);
  return names;
}

Words schedule_names() {
  Words names;
  for (const CatalogueEntry& entry : catalogue()) names.emplace_back(entry.name);
  return names;
}

/// Returns the words that stand for an argument or an option's value, by its name.
Words words_named(const std::string& name, const CLI::App& verb) {
  static const std::map<std::string, std::function<Words()>> kinds{
      {"model", [] { return presets_of(Preset::Kind::kModel); }},
      {"cluster", [] { return presets_of(Preset::Kind::kCluster); }},
      {"--model", [] { return presets_of(Preset::Kind::kModel); }},
      {"--cluster", [] { return presets_of(Preset::Kind::kCluster); }},
      {"--base", [] { return presets_of(Preset::Kind::kCluster); }},
      {"--stack", [] { return presets_of(Preset::Kind::kStack); }},
      {"schedule", schedule_names},
      {"--schedule", schedule_names},
      {"--to", target_names},
      {"--from", target_names}};
  if (name == "name") {
    const std::string kind = verb.get_name();
    return kind == "models"     ? presets_of(Preset::Kind::kModel)
           : kind == "clusters" ? presets_of(Preset::Kind::kCluster)
           : kind == "stacks"   ? presets_of(Preset::Kind::kStack)
                                : schedule_names();
  }
  const auto found = kinds.find(name);
  return found == kinds.end() ? Words{} : found->second();
}

Words values_of(const CLI::Option& option, const CLI::App& verb) {
  Words choices = choices_of(option);
  if (choices.empty() && option.get_positional()) return words_named(option.get_name(true), verb);
  for (const std::string& name : option.get_lnames())
    if (choices.empty()) choices = words_named("--" + name, verb);
  return choices;
}

/// Returns the values of the verb's argument number `count`.
Words argument_values(const CLI::App& verb, std::size_t count) {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_positional() && count-- == 0) return values_of(*option, verb);
  }
  return {};
}

}  // namespace

Words completions(const CLI::App& app, const Words& words) {
  const CLI::App* verb = &app;
  const CLI::Option* open = nullptr;  ///< whose value comes next
  std::size_t arguments = 0;
  if (words.empty()) return {};
  for (const std::string& word : words | std::views::take(words.size() - 1)) {
    const CLI::App* next = verb_named(*verb, word);
    if (open != nullptr) {
      open = nullptr;
    } else if (next != nullptr) {
      verb = next;
    } else if (word.starts_with('-')) {
      const CLI::Option* option = option_named(*verb, word);
      open = option != nullptr && option->get_expected_max() > 0 ? option : nullptr;
    } else {
      ++arguments;
    }
  }
  Words found;
  if (open != nullptr) {
    found = values_of(*open, *verb);
  } else if (words.back().starts_with('-')) {
    found = option_names(*verb);
  } else if (const auto verbs = verbs_of(*verb); !verbs.empty()) {
    for (const CLI::App* of : verbs)
      if (!of->get_group().empty()) found.push_back(of->get_name());
  } else {
    found = argument_values(*verb, arguments);
  }
  std::erase_if(found, [&](const std::string& word) { return !word.starts_with(words.back()); });
  std::ranges::sort(found);
  return found;
}

std::string_view completion_script(std::string_view shell) {
  if (shell == "zsh")
    return R"(#compdef plumb
_plumb() {
  local -a found
  found=("${(@f)$(plumb complete -- "${(@)words[2,CURRENT]}")}")
  if [[ -n "${found[1]}" ]]; then compadd -a found; else _files; fi
}
compdef _plumb plumb
)";
  return R"(_plumb() {
  mapfile -t COMPREPLY < <(plumb complete -- "${COMP_WORDS[@]:1:COMP_CWORD}")
}
complete -o default -F _plumb plumb
)";
}

}}  // namespace plumb::tools
