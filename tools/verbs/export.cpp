#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/exchange/chakra/chakra_file.h"
#include "planner/exchange/export_settings.h"
#include "planner/exchange/slurm_script.h"
#include "planner/search/evaluate_plan.h"
#include "planner/search/stack_conflict.h"
#include "planner/spec/cluster_sites.h"
#include "planner/spec/layout_keys.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/torch_csv.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/plan_input.h"
#include "tools/inputs/target_input.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// Returns the plan with the layers of each stage named, balanced as it would run.
Plan with_stages(Plan plan) {
  if (!plan.layout.split.empty() || plan.layout.pipeline * plan.layout.chunks == 1) return plan;
  Pricing pricing(plan.model, plan.cluster, plan.training);
  const Evaluation evaluation = evaluate(pricing, plan, std::nullopt, {});
  return evaluation.exists ? plan_of(pricing, evaluation, plan.order) : plan;
}

/// Returns a note for each way in which the target's stack is not the one that the plan was predicted for, or does not
/// run the plan's layout.
std::vector<std::string> stack_differences(const Plan& plan, const std::string& stack) {
  std::vector<std::string> notes;
  if (stack.empty()) return notes;
  const std::string predicted = plan.training.stack ? plan.training.stack->name : std::string(kOwnExecutor);
  if (predicted != stack) {
    notes.push_back(
        fmt::format("the plan was predicted for stack {}, and this target runs as {}: `plumb import` of the "
                    "answer gives a plan to simulate for that",
                    predicted, stack));
  }
  Plan there = plan;
  there.training.stack = stack_input(stack);
  there.training.stack_assumed.clear();
  const Pricing pricing(there.model, there.cluster, there.training);
  for (const Rejection& broken : stack_conflicts(pricing, there.layout)) notes.push_back(broken.reason);
  if (site_count(plan.cluster) > 1) notes.push_back("ranks must be numbered over the sites in their order");
  return notes;
}

std::string head_of(const Target& target, const Plan& plan) {
  return fmt::format("{}# {} on {}: {}\n", target.form == SettingsForm::kArguments ? "#!/bin/bash\n" : "",
                     plan.model.name, devices_text(plan.cluster), to_text(plan.layout));
}

int export_order(const ExportArguments& arguments, const Plan& plan) {
  if (!arguments.slurm.empty())
    throw UsageError("--slurm starts a trainer, and a CSV is the order of a schedule alone");
  const std::string text = write_torch_csv(order_of(plan));
  print_note(
      "a CSV holds the order of the actions alone: torchtitan takes it as parallelism.pipeline_parallel_schedule_csv");
  if (!arguments.output.empty()) write_file(arguments.output, text);
  if (arguments.json) print_answer(json_answer({{"target", kTorchCsv}, {"text", text}}));
  if (arguments.output.empty() && !arguments.json) print_answer(text);
  return kDone;
}

/// Writes PREFIX.RANK.et for each rank, and PREFIX.groups.json.
int export_traces(const ExportArguments& arguments, const Plan& plan) {
  if (!arguments.slurm.empty()) throw UsageError("--slurm starts a trainer, and execution traces are for a simulator");
  if (arguments.output.empty())
    throw UsageError("chakra has a file for each rank: name the begin of their names by -o");
  Pricing pricing(plan.model, plan.cluster, plan.training);
  const Evaluation evaluation = evaluate(pricing, plan, std::nullopt, {});
  if (!evaluation.exists) throw InputError(fmt::format("{}: {}", arguments.plan, evaluation.infeasible));
  const ChakraGroups groups = chakra_groups(plan.layout);
  const int ranks = world_size(grid_of(plan.layout));
  std::size_t nodes = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<ChakraNode> of_rank = chakra_nodes(evaluation, groups, rank);
    nodes += of_rank.size();
    write_file(fmt::format("{}.{}.et", arguments.output, rank), chakra_file(of_rank));
  }
  const std::string groups_file = arguments.output + ".groups.json";
  write_file(groups_file, chakra_groups_file(groups));
  print_note(
      fmt::format("wrote {}.0.et to {}.{}.et, {} nodes in all, and {}: ASTRA-sim takes them as "
                  "--workload-configuration={} --comm-group-configuration={}",
                  arguments.output, arguments.output, ranks - 1, nodes, groups_file, arguments.output, groups_file));
  if (arguments.json)
    print_answer(json_answer({{"target", kChakra}, {"ranks", ranks}, {"nodes", nodes}, {"groups", groups_file}}));
  return kDone;
}

}  // namespace

int export_verb(const ExportArguments& arguments) {
  if (!arguments.slurm.empty() && arguments.output.empty())
    throw UsageError("--slurm starts the target with its file: name that file by -o");
  for (const std::string& path : {arguments.output, arguments.slurm}) {
    if (!path.empty()) require_writable(path);
  }
  const Plan plan = with_stages(plan_input(arguments.plan));
  if (arguments.target == kTorchCsv) return export_order(arguments, plan);
  if (!plan.layout.meshes.empty())
    throw InputError(fmt::format(
        "{}: its pipeline ranks are meshes of different shape (meshes={}), which {} has no settings for: plan with one "
        "mesh for all, as in --layout dp=2,tp=2",
        arguments.plan, value_text(plan.layout.meshes), arguments.target));
  if (arguments.target == kChakra) return export_traces(arguments, plan);
  const Target target = target_input(arguments.target);
  const LaunchedDevices devices = launched_devices(plan.cluster.devices, plan.cluster.devices_per_node);
  Facts facts = facts_of(plan.model, plan.training, plan.layout);
  facts["nodes"] = devices.nodes;
  facts["devices_per_node"] = devices.per_node;
  Exported exported = export_settings(target, facts);
  if (plan.order) exported.refused.emplace_back("the plan has an order of its own: export that to torch-csv");
  if (!exported.refused.empty()) {
    print_note(fmt::format("plumb: {}", fmt::join(exported.refused, "; ")));
    return kInfeasible;
  }
  const std::string stack = stack_of(target, facts);
  for (const std::string& note : exported.notes) print_note(note);
  for (const std::string& note : stack_differences(plan, stack)) print_note(note);

  const std::string text = settings_text(target.form, exported.settings, head_of(target, plan));
  if (!arguments.output.empty()) write_file(arguments.output, text);
  if (!arguments.slurm.empty())
    write_file(arguments.slurm, slurm_script(target, devices, plan.model.name, arguments.output));
  if (arguments.json) {
    ordered_json settings = ordered_json::object();
    for (const auto& [key, value] : exported.settings) settings[key] = value;
    print_answer(json_answer({{"target", target.name},
                              {"stack", stack.empty() ? ordered_json() : ordered_json(stack)},
                              {"settings", settings},
                              {"notes", exported.notes},
                              {"text", text}}));
  } else if (arguments.output.empty()) {
    print_answer(text);
  } else {
    print_note(fmt::format("wrote {}: {}", arguments.output, target.note));
  }
  return kDone;
}

}}  // namespace plumb::tools
