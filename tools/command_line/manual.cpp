#include "tools/command_line/manual.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/command_line/command_tree.h"
#include "tools/command_line/verb_examples.h"

namespace plumb { inline namespace tools {
namespace {

/// Returns the text without what man(7) would read as its own.
std::string plain(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

void add_verb(std::string& page, const CLI::App& verb) {
  if (verb.get_group().empty()) return;
  const std::string name = full_name(verb);
  page += fmt::format(".SS {}\n{}.\n", plain(name), plain(verb.get_description()));
  if (const std::string example(example_of(name)); !example.empty())
    page += fmt::format(".PP\n.RS\n.nf\n{}\n.fi\n.RE\n", plain(example));
  for (const CLI::Option* option : verb.get_options()) {
    const std::string shown = option->get_positional() ? option->get_name(true) : option->get_name();
    const std::string value = option->get_positional() ? "" : value_name(*option);
    page += fmt::format(".TP\n.B {}{}\n{}\n", plain(shown), value.empty() ? "" : " " + plain(value),
                        plain(option->get_description()));
  }
  for (const CLI::App* below : verbs_of(verb)) add_verb(page, *below);
}

}  // namespace

std::string manual_page(const CLI::App& app, const std::string& version) {
  std::string page = fmt::format(
      ".TH PLUMB 1 \"\" \"{}\"\n.ad l\n.SH NAME\nplumb \\- plans, simulates and replays "
      "pipeline\\-parallel training\n.SH SYNOPSIS\n.B plumb\nVERB [OPTIONS]\n"
      ".SH DESCRIPTION\n{}\n.SH VERBS\n",
      plain(version), plain(app.get_description()));
  for (const CLI::App* verb : verbs_of(app)) add_verb(page, *verb);
  return page + ".SH EXIT STATUS\n0: done. 1: an input is wrong. 2: the command line is. 3: nothing is feasible.\n";
}

}}  // namespace plumb::tools
