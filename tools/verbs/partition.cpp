#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/evaluate/graph_stages.h"
#include "planner/search/evaluate_plan.h"
#include "planner/search/layout_conflict.h"
#include "planner/search/plan.h"
#include "planner/shard/mesh_partition.h"
#include "planner/spec/rank_layout.h"
#include "planner/spec/short_layout.h"
#include "schedules/error.h"
#include "schedules/forms/file_format.h"
#include "schedules/forms/json_text.h"
#include "schedules/forms/strict_json.h"
#include "tools/inputs/file_kinds.h"
#include "tools/inputs/inputs.h"
#include "tools/io/console.h"
#include "tools/io/files.h"
#include "tools/io/usage.h"
#include "tools/reports/interval_text.h"
#include "tools/reports/stack_text.h"
#include "tools/reports/step_line.h"
#include "tools/reports/table.h"
#include "tools/verbs/partition_meshes.h"
#include "tools/verbs/partition_methods.h"
#include "tools/verbs/verbs.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

/// Returns the layout that is asked for. The number of stages is by default the number of devices over the replicas.
Layout layout_asked(const QuestionArguments& question, const ClusterSpec& cluster) {
  LayoutRequest request = layout_input(question);
  const int data = request.data.value_or(1), chunks = request.chunks.value_or(1);
  if (!request.pipeline) request.pipeline = std::max(1, cluster.devices / data);
  if (!request.schedule && chunks > 1) request.schedule = "interleaved";
  return layout_of(request);
}

/// A plan whose stages are chosen, and where these have meshes of their own what was made least.
struct AskedPartition {
  Plan plan;
  std::optional<MeshPartition> meshes;
  std::string infeasible;
};

/// Returns the model on stages with meshes of their own.
AskedPartition plan_on_meshes(const PartitionArguments& arguments) {
  constexpr int kGroupsOfLayers = 48, kGroupsOfNodes = 12;  // layers that are alike are priced once
  QuestionArguments question = arguments.question;
  AskedPartition asked{.plan = {.model = model_input(question.model), .cluster = cluster_input(question.cluster)}};
  Plan& plan = asked.plan;
  plan.layout = layout_of(layout_input(question));
  if (question.global_batch == 0) question.global_batch = plan.layout.microbatch * kMeshMicrobatches;
  const TrainingSpec training = training_input(question, plan.model, plan.cluster);
  Pricing pricing(plan.model, plan.cluster, training, assumable_stacks(question));
  const int usual = pricing.graph() == nullptr ? kGroupsOfLayers : kGroupsOfNodes;
  asked.meshes = mesh_partition(pricing, plan.layout, arguments.groups > 0 ? arguments.groups : usual);
  if (asked.meshes)
    plan.layout = asked.meshes->layout;
  else
    asked.infeasible =
        "no stages on all devices fit their memory: use more devices, recompute=full, zero=1 or another mbs";
  plan.training = pricing.training_in(plan.layout);
  return asked;
}

AskedPartition plan_asked(const PartitionArguments& arguments) {
  if (arguments.meshes) return plan_on_meshes(arguments);
  QuestionArguments question = arguments.question;
  Plan plan{.model = model_input(question.model), .cluster = cluster_input(question.cluster)};
  plan.layout = layout_asked(question, plan.cluster);
  constexpr int kMicrobatchesOfAStage = 4;
  if (question.global_batch == 0)
    question.global_batch = plan.layout.microbatch * plan.layout.data * plan.layout.pipeline * kMicrobatchesOfAStage;
  const TrainingSpec training = training_input(question, plan.model, plan.cluster);
  plan.training = Pricing(plan.model, plan.cluster, training, assumable_stacks(question)).training_in(plan.layout);
  return {.plan = std::move(plan)};
}

double seconds_of(const CostTable& costs, Op op, int stage) {
  return to_seconds(duration_of(costs, {.op = op, .stage = stage})).count();
}

/// Returns what a micro-batch's messages take between the stages, there and back.
Seconds hops_of(const Evaluation& evaluation) {
  Seconds sum{0};
  const StageNeighbors neighbors = stage_neighbors(evaluation.lowered);
  for (std::size_t stage = 0; stage < evaluation.lowered.stages.size(); ++stage) {
    if (neighbors.successor[stage] < 0) continue;
    const auto next = static_cast<std::size_t>(neighbors.successor[stage]);
    const int from = evaluation.lowered.stages[stage].rank, to = evaluation.lowered.stages[next].rank;
    const LinkCost &on = link_between(evaluation.costs, from, to), &back = link_between(evaluation.costs, to, from);
    sum += on.latency + back.latency +
           Seconds{static_cast<double>(evaluation.costs.stages[stage].activation_message_bytes) / on.bytes_per_second +
                   static_cast<double>(evaluation.costs.stages[next].gradient_message_bytes) / back.bytes_per_second};
  }
  return sum;
}

/// Returns Alpa's objective beside the simulated step, and that of operators which are divided in any way.
std::string objective_text(const AskedPartition& asked, const Evaluation& evaluation, std::optional<Seconds> any) {
  if (!asked.meshes) return {};
  const Plan& plan = asked.plan;
  std::string text = fmt::format(
      "\n{} by Alpa's objective (the stages' times and {} times the slowest, {}), from {} groups of layers; messages "
      "between the stages take {} of a micro-batch besides\n",
      duration_text(asked.meshes->objective.count()), microbatches_of(plan.training, plan.layout) - 1,
      duration_text(asked.meshes->slowest.count()), asked.meshes->groups, duration_text(hops_of(evaluation).count()));
  if (any)
    text += fmt::format("with operators divided in any way, which no plan holds, the objective is {} (without -o)\n",
                        duration_text(any->count()));
  return text;
}

/// Returns the entry of one stage, with the keys that the table and the JSON print.
ordered_json stage_json(const Plan& plan, const Evaluation& evaluation, const GraphTables* graph, int stage) {
  const StagePlace& place = evaluation.lowered.stages[static_cast<std::size_t>(stage)];
  const std::vector<int>& split = evaluation.priced.split;
  const std::vector<int> first = first_nodes(split);
  const StageCosts& costs = evaluation.costs.stages[static_cast<std::size_t>(stage)];
  const int begin = first[place.model_part], end = first[place.model_part + 1];
  ordered_json row = {{"stage", stage}, {"rank", place.rank}, {"nodes", end - begin}};
  row["first"] = graph != nullptr ? ordered_json(graph->nodes[begin].name) : ordered_json(nullptr);
  row["last"] = graph != nullptr ? ordered_json(graph->nodes[end - 1].name) : ordered_json(nullptr);
  row["forward_s"] = seconds_of(evaluation.costs, Op::kForward, stage);
  row["backward_s"] = seconds_of(evaluation.costs, Op::kBackward, stage);
  row["parameter_bytes"] = costs.memory.parameter_bytes;
  row["activation_bytes"] = costs.memory.forward_bytes;
  const bool last = place.model_part + 1 == std::ssize(split);
  row["sends_bytes"] = last ? 0 : costs.activation_message_bytes;
  row["sends_tensors"] = graph == nullptr || last ? ordered_json(last ? 0 : 1) : ordered_json(graph->cuts[end].tensors);
  row["peak_memory_bytes"] = evaluation.simulation.peak_memory_bytes[static_cast<std::size_t>(place.rank)];
  const Layout of_rank = layout_of_rank(plan.layout, place.rank);
  row["dp"] = of_rank.data;
  row["tp"] = of_rank.tensor;
  row["split_of"] = plan.model.graph ? "nodes" : "transformer layers";
  return row;
}

std::string table_text(const ordered_json& stages, bool with_meshes) {
  TextTable table{.head = {"stage", "rank", "nodes", "from", "to", "forward", "backward", "weights",
                           "kept of a micro-batch", "sends on", "tensors", "peak memory"}};
  const auto text = [](const ordered_json& value) { return value.is_null() ? "-" : value.get<std::string>(); };
  const auto bytes = [](const ordered_json& value) { return bytes_text(value.get<double>()); };
  for (const ordered_json& row : stages) {
    table.rows.push_back({json_line(row["stage"]), json_line(row["rank"]), json_line(row["nodes"]), text(row["first"]),
                          text(row["last"]), duration_text(row["forward_s"]), duration_text(row["backward_s"]),
                          bytes(row["parameter_bytes"]), bytes(row["activation_bytes"]), bytes(row["sends_bytes"]),
                          json_line(row["sends_tensors"]), bytes(row["peak_memory_bytes"])});
  }
  for (std::size_t row = 0; with_meshes && row <= table.rows.size(); ++row) {
    std::vector<std::string>& cells = row == 0 ? table.head : table.rows[row - 1];
    const std::string mesh =
        row == 0 ? "mesh" : to_text(RankMesh{.data = stages[row - 1]["dp"], .tensor = stages[row - 1]["tp"]});
    cells.insert(cells.begin() + 2, mesh);
  }
  return to_text(table);
}

ordered_json methods_json(const std::vector<MethodAnswer>& methods) {
  if (methods.empty()) return nullptr;
  ordered_json rows = ordered_json::array();
  for (const MethodAnswer& answer : methods)
    rows.push_back({{"method", answer.method},
                    {"split", answer.split},
                    {"step_time_s", answer.step_seconds},
                    {"fits", answer.fits}});
  return rows;
}

std::string methods_text(const std::vector<MethodAnswer>& methods) {
  if (methods.empty()) return {};
  TextTable table{.head = {"cut by", "nodes of each stage", "step time", ""}};
  for (const MethodAnswer& answer : methods)
    table.rows.push_back({answer.method, fmt::format("{}", fmt::join(answer.split, ", ")),
                          duration_text(answer.step_seconds), answer.fits ? "" : "does not fit"});
  return "\n" + to_text(table);
}

/// Writes the plan, which the other verbs then take.
void write_plan(const PartitionArguments& arguments, Plan plan, const Evaluation& evaluation) {
  if (arguments.output.empty()) return;
  plan.layout.split = evaluation.priced.split;
  plan.prediction = prediction_of(evaluation);
  write_file(arguments.output, json_answer(with_format(FileForm::kPlan, to_json(plan, PLUMB_VERSION))));
  print_note(fmt::format("wrote {}", arguments.output));
}

int partition_model(const PartitionArguments& arguments) {
  if (!arguments.output.empty()) require_writable(arguments.output);
  AskedPartition asked = plan_asked(arguments);
  Plan& plan = asked.plan;
  if (!asked.infeasible.empty()) {
    print_note("plumb: " + asked.infeasible);
    return kInfeasible;
  }
  if (const auto conflict = layout_conflict(plan.model, plan.training, plan.cluster, plan.layout)) {
    print_note(fmt::format("plumb: {}: {}", to_text(plan.layout), *conflict));
    return kInfeasible;
  }
  Pricing pricing(plan.model, plan.cluster, plan.training);
  const GraphTables* graph = pricing.graph();
  const int parts = plan.layout.pipeline * plan.layout.chunks;
  if (graph == nullptr && arguments.method != "time")
    throw UsageError(fmt::format("--method {} is for layer graphs: the layers of {} are alike, leave it away",
                                 arguments.method, plan.model.name));
  std::vector<MethodAnswer> methods;
  if (graph != nullptr && plan.layout.split.empty()) {
    methods = compared_methods(plan, graph->nodes, parts, arguments.method);
    plan.layout.split = split_by_method(arguments.method, graph->nodes, parts);
  }
  const Evaluation evaluation = evaluate(plan, {.record_timeline = false});
  ordered_json stages = ordered_json::array();
  for (int stage = 0; stage < std::ssize(evaluation.lowered.stages); ++stage)
    stages.push_back(stage_json(plan, evaluation, graph, stage));
  std::optional<Seconds> any;
  if (asked.meshes && graph != nullptr) any = objective_of_any_sharding(arguments);
  if (arguments.json) {
    ordered_json answer{
        {"model", plan.model.name},
        {"layout", to_text(plan.layout)},
        {"method", arguments.method},
        {"split", evaluation.priced.split},
        {"stages", stages},
        {"methods", methods_json(methods)},
        {"objective_s", asked.meshes ? ordered_json(asked.meshes->objective.count()) : ordered_json(nullptr)},
        {"objective_of_any_sharding_s", any ? ordered_json(any->count()) : ordered_json(nullptr)},
        {"prediction", to_json(prediction_of(evaluation))},
        {"infeasible", evaluation.infeasible.empty() ? ordered_json(nullptr) : ordered_json(evaluation.infeasible)}};
    add_stack(answer, plan.training);
    answer.update(interval_json(plan, evaluation.simulation));
    print_answer(json_answer(answer));
  } else {
    print_text(fmt::format("{} on {}:{}, {}: {}\n{}; {}\n\n", plan.model.name, plan.cluster.name, plan.cluster.devices,
                           short_text(plan.layout), to_text(step_line(plan, evaluation.simulation, evaluation.rates)),
                           stack_text(plan.training), interval_text(plan, evaluation.simulation)));
    print_text(table_text(stages, asked.meshes.has_value()) + methods_text(methods) +
               objective_text(asked, evaluation, any));
    for (const std::string& note : notes_of(evaluation)) print_note(note);
  }
  if (evaluation.infeasible.empty()) {
    write_plan(arguments, plan, evaluation);
    return kDone;
  }
  print_note("plumb: " + evaluation.infeasible);
  return kInfeasible;
}

}  // namespace

int partition_verb(const PartitionArguments& arguments) {
  const std::string& graph = arguments.question.model;
  if (graph.ends_with(".txt"))
    return read_as(FileKind::kProfile, graph, [&] { return partition_profile(arguments, read_text_file(graph)); });
  if (graph.ends_with(".json")) {
    const std::string text = read_text_file(graph);
    const nlohmann::json json = read_as(FileKind::kModel, graph, [&] { return parse_json(text, graph); });
    if (json.is_object() && json.contains("nodes") && json.contains("edges")) return partition_profile(arguments, text);
  }
  const bool measured = arguments.as_pipedream || arguments.straight || !arguments.levels.empty() ||
                        arguments.memory_bytes > 0 || arguments.microbatches > 0 || arguments.memory_constraint ||
                        arguments.fewer_machines || arguments.compression_ratio > 0;
  if (measured)
    throw UsageError(
        "--levels, --memory, --microbatches, --straight, --as-pipedream and what belongs to it are for measured graphs "
        "(profiles of PipeDream, inputs of Piper): leave them away");
  if (arguments.question.cluster.empty()) throw UsageError("no cluster is given: name one, as in h100:4");
  if (arguments.meshes && arguments.method != "time")
    throw UsageError("--meshes has its own way to cut: leave --method away");
  if (arguments.groups > 0 && !arguments.meshes)
    throw UsageError("--groups is for stages on meshes of their own: give --meshes");
  const bool any_sharding =
      arguments.meshes && arguments.output.empty() && model_input(arguments.question.model).graph.has_value();
  return any_sharding ? partition_meshes(arguments) : partition_model(arguments);
}

}}  // namespace plumb::tools
