#include "tools/command_line/command_line.h"

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/command_line/add_verbs.h"
#include "tools/command_line/help_page.h"
#include "tools/command_line/option_values.h"
#include "tools/command_line/report_fault.h"
#include "tools/command_line/usage_fault.h"
#include "tools/io/console.h"
#include "tools/io/progress.h"
#include "tools/io/terminal.h"
#include "tools/io/usage.h"
#include "tools/io/version.h"
#include "tools/reports/table.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

void add_presets(CLI::App& app, Chosen& chosen) {
  const auto add = [&](const std::string& kinds, const std::string& what, int (*show)(const PresetArguments&)) {
    const auto arguments = std::make_shared<PresetArguments>();
    CLI::App* verb = add_verb(app, chosen, kinds, "list the " + what + " presets, or show one", arguments, show);
    verb->add_option("name", arguments->name, "a preset or a file");
    add_json(verb, arguments->json);
  };
  add("models", "model", models_verb);
  add("clusters", "cluster", clusters_verb);
  add("stacks", "training stack", stacks_verb);
}

void add_trace(CLI::App& app, Chosen& chosen) {
  CLI::App* group = app.add_subcommand("trace", "read timelines");
  group->require_subcommand(1);
  const auto arguments = std::make_shared<TraceArguments>();
  CLI::App* verb = add_verb(*group, chosen, "info", "what a Chrome trace adds up to", arguments, trace_info_verb);
  verb->add_option("trace", arguments->file, "a trace file")->required();
  add_json(verb, arguments->json);
  const auto two = std::make_shared<TraceCompareArguments>();
  verb = add_verb(*group, chosen, "compare", "how one timeline of a schedule differs from another, and why", two,
                  trace_compare_verb);
  verb->add_option("first", two->first, "a trace of Plumb's, which stands as predicted")->required();
  verb->add_option("second", two->second, "a trace of the same schedule, which stands as measured")->required();
  add_json(verb, two->json);
}

/// Runs the verb, and says on stderr for how long if that takes more than a second. Verbs that measure say themselves how
/// far they are: they start processes, which takes a process without other threads.
int run_chosen(const CLI::App& app, const Chosen& chosen) {
  constexpr std::array<std::string_view, 3> kMeasuring{"run", "validate", "calibrate"};
  const std::string verb = app.get_subcommands().front()->get_name();
  std::optional<Progress> progress;
  if (std::ranges::find(kMeasuring, verb) == kMeasuring.end()) progress.emplace("plumb " + verb);
  const int code = chosen();
  finish_answers();
  return code;
}

int parse_and_run(CLI::App& app, const Chosen& chosen, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      print_note(fmt::format("plumb: {}", usage_fault(app, {argv + 1, argv + argc}, error)));
      return kUsage;
    }
    std::ostringstream help;  // --help, --version
    app.exit(error, help, help);
    print_answer(help.str());
    finish_answers();
    return kDone;
  }
  return run_chosen(app, chosen);
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app{
      "Plumb plans pipeline-parallel training, simulates the real schedule and runs the same schedule to show how far "
      "off "
      "the prediction was.",
      "plumb"};
  app.formatter_fn([](const CLI::App* verb, const std::string&, CLI::AppFormatMode) {
    return help_page(*verb, terminal_draw_options().width);
  });
  app.option_defaults()->always_capture_default();
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer(kCountsRead);
  if (const std::optional<int> width = terminal_width()) fold_tables_at(*width);
  Chosen chosen;
  add_presets(app, chosen);
  add_plan(app, chosen);
  add_budget(app, chosen);
  add_simulate(app, chosen);
  add_schedule(app, chosen);
  add_plan_readers(app, chosen);
  add_exchange(app, chosen);
  add_score(app, chosen);
  add_hardware(app, chosen);
  add_calibrate(app, chosen);
  add_trace(app, chosen);
  add_partition(app, chosen);
  add_about(app, chosen);
  require_numbers(app);
  try {
    return parse_and_run(app, chosen, argc, argv);
  } catch (const std::exception& error) {
    return report_fault(error);
  }
}

}}  // namespace plumb::tools
