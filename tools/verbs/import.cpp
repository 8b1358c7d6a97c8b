#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/exchange/import_settings.h"
#include "planner/search/plan.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "schedules/schedule.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/schedule_input.h"
#include "tools/inputs/target_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/reports/or_null.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// A run as a trainer's file and the options say it, with the order of a CSV.
struct ImportedRun {
  std::string target;
  Imported imported;
  std::optional<Schedule> order;
};

/// Returns what the options say besides the file.
Facts known_facts(const ImportArguments& arguments) {
  Facts known = facts_of(layout_input(arguments.question));
  if (arguments.devices > 0) known["devices"] = arguments.devices;
  if (arguments.question.global_batch > 0) known["global_batch"] = arguments.question.global_batch;
  if (arguments.question.sequence > 0) known["seq"] = arguments.question.sequence;
  if (!arguments.question.precision.empty()) known["precision"] = arguments.question.precision;
  if (!arguments.question.optimizer.empty()) known["optimizer"] = arguments.question.optimizer;
  if (!arguments.question.model.empty()) known["model.layers"] = model_input(arguments.question.model).layers;
  return known;
}

/// An order says the ranks of a pipeline and their stages, and nothing of the other degrees.
ImportedRun imported_order(const ImportArguments& arguments, Facts known) {
  Schedule order = read_schedule(arguments.file);
  const auto ranks = static_cast<int>(order.ranks.size());
  learn(known, "pp", ranks, arguments.file);
  learn(known, "v", static_cast<int>(order.stages.size()) / ranks, arguments.file);
  learn(known, "schedule", "1f1b", arguments.file);  // the order stands in its place
  return {.target = kTorchCsv, .imported = {.run = run_of(known, arguments.file)}, .order = std::move(order)};
}

ImportedRun imported_run(const ImportArguments& arguments) {
  Facts known = known_facts(arguments);
  if (arguments.target == kTorchCsv || (arguments.target.empty() && arguments.file.ends_with(".csv")))
    return imported_order(arguments, std::move(known));
  const TrainerSettings read = trainer_settings_input(arguments.file, arguments.target);
  for (const auto& [fact, value] : read.facts) learn(known, fact, value, arguments.file);
  return {.target = read.target.name,
          .imported = import_settings(read.target, read.settings, std::move(known), arguments.file)};
}

/// Returns the words of `plumb simulate` that ask about the run; what nobody has said stands in capital letters.
std::string question_of(const ImportedRun& run, const ImportArguments& arguments) {
  const ReadRun& read = run.imported.run;
  const auto or_open = [](const std::string& text, const char* open) {
    return text.empty() ? std::string(open) : text;
  };
  const auto number = [](const auto& value, const char* open) {
    return value ? std::to_string(*value) : std::string(open);
  };
  std::string words =
      fmt::format("plumb simulate {} {} --global-batch {} --seq {}", or_open(arguments.question.model, "MODEL"),
                  or_open(arguments.question.cluster, "CLUSTER"), number(read.global_batch, "BATCH"),
                  number(read.sequence, "TOKENS"));
  if (read.precision) words += fmt::format(" --precision {}", precision_name(*read.precision));
  if (read.optimizer) words += fmt::format(" --optimizer {}", optimizer_name(*read.optimizer));
  if (const std::string stack = or_open(arguments.question.stack, run.imported.stack.c_str()); !stack.empty())
    words += fmt::format(" --stack {}", stack);
  if (!arguments.question.fp8_recipe.empty()) words += fmt::format(" --fp8-recipe {}", arguments.question.fp8_recipe);
  LayoutRequest layout = read.layout;
  if (run.order) layout.schedule = arguments.file;
  return words + fmt::format(" --layout {}", to_text(layout));
}

/// Returns the names of what a plan needs and nobody has said.
std::vector<std::string> missing(const ImportedRun& run, const ImportArguments& arguments) {
  const ReadRun& read = run.imported.run;
  std::vector<std::string> names;
  if (arguments.question.cluster.empty()) names.emplace_back("--cluster");
  if (arguments.question.model.empty() && !read.model) names.emplace_back("--model");
  if (!read.layout.data) names.emplace_back("--devices");
  if (!read.global_batch) names.emplace_back("--global-batch");
  if (!read.sequence) names.emplace_back("--seq");
  if (!read.layout.microbatch) names.emplace_back("--layout mbs=N");
  return names;
}

Plan plan_of(const ImportedRun& run, const ImportArguments& arguments) {
  if (const std::vector<std::string> names = missing(run, arguments); !names.empty()) {
    throw UsageError(fmt::format("a plan needs more than {} says: give {}", arguments.file, fmt::join(names, ", ")));
  }
  const ReadRun& read = run.imported.run;
  Plan plan{.model = arguments.question.model.empty() ? *read.model : model_input(arguments.question.model)};
  plan.layout = layout_of(read.layout);
  const Layout& layout = plan.layout;
  plan.cluster =
      resize(cluster_input(arguments.question.cluster), layout.data * layout.tensor * layout.pipeline * layout.context);
  QuestionArguments question = arguments.question;
  question.global_batch = *read.global_batch;
  question.sequence = *read.sequence;
  if (read.precision) question.precision = precision_name(*read.precision);
  if (read.optimizer) question.optimizer = optimizer_name(*read.optimizer);
  if (question.stack.empty()) question.stack = run.imported.stack;
  plan.training = training_input(question, plan.model, plan.cluster);
  if (read.gradient_precision) plan.training.gradient_precision = *read.gradient_precision;
  plan.order = run.order;
  return plan;
}

ordered_json answer_of(const ImportedRun& run, const ImportArguments& arguments) {
  const ReadRun& read = run.imported.run;
  ordered_json layout = ordered_json::object();
  for (const auto& [fact, value] : facts_of(read.layout)) layout[fact] = value;
  return {{"target", run.target},
          {"layout", layout},
          {"global_batch", or_null(read.global_batch)},
          {"seq", or_null(read.sequence)},
          {"precision", read.precision ? ordered_json(precision_name(*read.precision)) : ordered_json()},
          {"stack", run.imported.stack.empty() ? ordered_json() : ordered_json(run.imported.stack)},
          {"model", read.model ? to_json(*read.model) : ordered_json()},
          {"ignored", run.imported.ignored},
          {"question", question_of(run, arguments)}};
}

}  // namespace

int import_verb(const ImportArguments& arguments) {
  if (!arguments.output.empty()) require_writable(arguments.output);
  const ImportedRun run = imported_run(arguments);
  if (!run.imported.ignored.empty()) {
    print_note(fmt::format("{}: settings that say nothing of the layout, ignored: {}", arguments.file,
                           fmt::join(run.imported.ignored, ", ")));
  }
  if (!arguments.output.empty()) {
    const Plan plan = plan_of(run, arguments);
    write_file(arguments.output, json_answer(with_format(FileForm::kPlan, to_json(plan, PLUMB_VERSION))));
    print_note(fmt::format("wrote {}: `plumb simulate {}` predicts it", arguments.output, arguments.output));
  }
  if (arguments.json) {
    print_answer(json_answer(answer_of(run, arguments)));
  } else {
    print_text(fmt::format("{}: a run of {}, {}\n{}\n", arguments.file, run.target,
                           run.imported.stack.empty() ? "whose stack is not described: name the nearest by --stack"
                                                      : "stack " + run.imported.stack,
                           question_of(run, arguments)));
  }
  return kDone;
}

}}  // namespace plumb::tools
