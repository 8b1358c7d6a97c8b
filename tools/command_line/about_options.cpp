#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "schedules/nearest_name.h"
#include "tools/command_line/add_verbs.h"
#include "tools/command_line/command_tree.h"
#include "tools/command_line/completion.h"
#include "tools/command_line/help_page.h"
#include "tools/command_line/manual.h"
#include "tools/io/console.h"
#include "tools/io/terminal.h"
#include "tools/io/usage.h"
#include "tools/io/version.h"

namespace plumb { inline namespace tools {
namespace {

/// Returns the verb that the words name one under the other. Throws UsageError with the nearest if there is none.
const CLI::App& verb_of(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* verb = &app;
  for (const std::string& word : words) {
    const CLI::App* next = verb_named(*verb, word);
    if (next == nullptr) {
      std::vector<std::string> names;
      for (const CLI::App* known : verbs_of(*verb)) names.push_back(known->get_name());
      throw UsageError(fmt::format("`{}` has no verb \"{}\": {}", full_name(*verb), word, did_you_mean(word, names)));
    }
    verb = next;
  }
  return *verb;
}

int print(std::string_view text) {
  print_answer(text);
  return kDone;
}

}  // namespace

void add_about(CLI::App& app, Chosen& chosen) {
  const auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* help = add_verb(app, chosen, "help", "say what a verb does, and its options", [&app, words] {
    return print(help_page(verb_of(app, *words), terminal_draw_options().width));
  });
  help->add_option("verb", *words, "a verb, as in schedule show");

  const auto shell = std::make_shared<std::string>();
  CLI::App* completion = add_verb(app, chosen, "completion", "print a script that completes commands in a shell",
                                  [shell] { return print(completion_script(*shell)); });
  completion->add_option("shell", *shell, "the shell")->required()->check(CLI::IsMember({"bash", "zsh"}));

  add_verb(app, chosen, "man", "print the manual page, to read by `plumb man | man -l -`",
           [&app] { return print(manual_page(app, version_text())); });

  // The scripts call this one, and nobody else.
  CLI::App* complete = add_verb(app, chosen, "complete", "list the words with which a command goes on", [&app, words] {
    const std::vector<std::string> found = completions(app, *words);
    return print(found.empty() ? "" : fmt::format("{}\n", fmt::join(found, "\n")));
  });
  complete->add_option("words", *words, "the command so far");
  complete->group("");
}

}}  // namespace plumb::tools
