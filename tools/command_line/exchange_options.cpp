#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "tools/command_line/add_verbs.h"
#include "tools/command_line/option_groups.h"
#include "tools/command_line/option_values.h"
#include "tools/inputs/target_input.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {

void add_exchange(CLI::App& app, Chosen& chosen) {
  const std::string targets = fmt::format("{}", fmt::join(target_names(), ", "));
  const auto out = std::make_shared<ExportArguments>();
  CLI::App* to = add_verb(app, chosen, "export", "hand a plan to the trainer that runs it", out, export_verb);
  to->add_option("plan", out->plan, "a plan file")->required();
  to->add_option("--to", out->target, targets)->required();
  to->add_option("-o,--output", out->output, "write the settings to a file");
  to->add_option("--slurm", out->slurm, "write a script that starts the trainer with that file under Slurm");
  add_json(to, out->json);

  const auto measured = std::make_shared<CompareArguments>();
  CLI::App* with =
      add_verb(app, chosen, "compare", "hold a run's log against its plan, and say what explains the difference",
               measured, compare_verb);
  with->add_option("plan", measured->plan, "the plan that the run followed")->required();
  with->add_option(
          "files", measured->files,
          "the log of the training program, or one trace a rank: of PyTorch's profiler or of Megatron's --trace")
      ->required();
  add_html(with, measured->html);
  add_json(with, measured->json);

  const auto in = std::make_shared<ImportArguments>();
  CLI::App* from =
      add_verb(app, chosen, "import", "read the layout of a run from its trainer's settings", in, import_verb);
  from->add_option("file", in->file, "settings or a command of a trainer, or PyTorch's CSV of a schedule")->required();
  from->add_option("--from", in->target, targets + " (default: told by the file)");
  from->add_option("--model", in->question.model, "the model, where the file does not describe it");
  from->add_option("--cluster", in->question.cluster, "the cluster of the plan");
  from->add_option("--devices", in->devices, "the devices of the run, where the file does not say them")
      ->transform(count_of<int>(1));
  add_question(from, in->question);
  from->add_option("-o,--output", in->output, "write a plan, to simulate");
  add_json(from, in->json);
}

}}  // namespace plumb::tools
