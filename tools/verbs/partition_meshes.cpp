#include "tools/verbs/partition_meshes.h"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "planner/shard/graph_pipeline.h"
#include "planner/spec/cluster_sites.h"
#include "schedules/error.h"
#include "schedules/forms/json_text.h"
#include "tools/inputs/inputs.h"
#include "tools/io/console.h"
#include "tools/io/usage.h"
#include "tools/machine/integer_solver.h"
#include "tools/reports/table.h"

namespace plumb { inline namespace tools {
namespace {

using nlohmann::ordered_json;

constexpr Seconds kSolverPatience{60};

/// Sites with the prices of the graph on each.
struct PricedSites {
  std::vector<std::string> names;
  std::vector<std::unique_ptr<Pricing>> pricings;

  std::vector<PipelineSite> sites() const {
    std::vector<PipelineSite> sites;
    for (const auto& pricing : pricings) sites.push_back({pricing.get()});
    return sites;
  }
  std::vector<PipelineSite> alone(std::size_t site) const { return {{pricings[site].get()}}; }
};

PricedSites priced_sites(const QuestionArguments& question, const ClusterSpec& cluster) {
  PricedSites priced;
  const ModelSpec model = model_input(question.model);
  if (!model.graph) {
    throw UsageError(
        fmt::format("--meshes shards the nodes of a layer graph, and {} is none: give a graph, as resnet-50 "
                    "or an ONNX model",
                    question.model));
  }
  for (int site = 0; site < site_count(cluster); ++site) {
    const ClusterSpec alone = site_alone(cluster, site);
    priced.names.push_back(fmt::format("{}:{}", alone.name, alone.devices));
    priced.pricings.push_back(std::make_unique<Pricing>(model, alone, training_input(question, model, alone)));
  }
  return priced;
}

/// Returns how many nodes have each sharding, the most frequent first: "31 column, 12 batch".
std::string shardings_text(const std::vector<GraphNode>& nodes, const StagePlan& stage) {
  std::map<std::string, int> counts;
  for (int node = stage.begin; node < stage.end; ++node) {
    const NodeSharding& sharding = stage.sharding.nodes[static_cast<std::size_t>(node - stage.begin)];
    ++counts[to_text(node_axes(nodes, node), sharding)];
  }
  std::vector<std::pair<int, std::string>> ordered;
  for (const auto& [text, count] : counts) ordered.emplace_back(-count, text);
  std::ranges::sort(ordered);
  std::vector<std::string> texts;
  for (const auto& [count, text] : ordered) texts.push_back(fmt::format("{} {}", -count, text));
  return fmt::format("{}", fmt::join(texts, ", "));
}

ordered_json stage_json(const std::vector<GraphNode>& nodes, const PricedSites& priced, const StagePlan& stage) {
  ordered_json shardings = ordered_json::object();
  for (int node = stage.begin; node < stage.end; ++node)
    shardings[nodes[node].name] =
        to_text(node_axes(nodes, node), stage.sharding.nodes[static_cast<std::size_t>(node - stage.begin)]);
  return {{"site", priced.names[stage.site]},
          {"devices", stage.devices},
          {"mesh", {stage.mesh[0].ranks, stage.mesh[1].ranks}},
          {"nodes", stage.end - stage.begin},
          {"first", nodes[stage.begin].name},
          {"last", nodes[stage.end - 1].name},
          {"time_s", stage.sharding.cost.count()},
          {"least_time_s", stage.sharding.bound.count()},
          {"exact", stage.sharding.exact},
          {"method", stage.sharding.method},
          {"rebuilds", stage.rebuilds},
          {"peak_memory_bytes", stage.peak_bytes},
          {"shardings", std::move(shardings)}};
}

std::string table_of(const std::vector<GraphNode>& nodes, const PricedSites& priced, const GraphPipeline& pipeline) {
  TextTable table{.head = {"stage", "site", "devices", "mesh", "nodes", "from", "to", "time", "memory", "shardings"}};
  for (std::size_t i = 0; i < pipeline.stages.size(); ++i) {
    const StagePlan& stage = pipeline.stages[i];
    table.rows.push_back(
        {fmt::format("{}", i), priced.names[stage.site], fmt::format("{}", stage.devices),
         fmt::format("{} x {}", stage.mesh[0].ranks, stage.mesh[1].ranks), fmt::format("{}", stage.end - stage.begin),
         nodes[stage.begin].name, nodes[stage.end - 1].name, duration_text(stage.sharding.cost.count()),
         bytes_text(stage.peak_bytes) + (stage.rebuilds ? ", rebuilt" : ""), shardings_text(nodes, stage)});
  }
  return to_text(table);
}

/// Returns the slowest of the links between neighbouring sites.
LinkCost slowest_between(const ClusterSpec& cluster) {
  LinkCost slowest;
  for (int site = 1; site < site_count(cluster); ++site) {
    const LinkCost link = site_link(cluster, site - 1, site, 1);
    if (link.bytes_per_second < slowest.bytes_per_second) slowest = link;
  }
  return slowest;
}

/// A long graph takes long by group.
int usual_groups(std::size_t nodes) {
  constexpr std::size_t kLongGraph = 1 << 11;
  return nodes > kLongGraph ? 6 : 12;
}

/// Returns the question of the arguments. Throws UsageError where options do not go together.
PipelineQuestion pipeline_asked(QuestionArguments& question, const ClusterSpec& cluster, int groups) {
  const Layout layout = layout_of(layout_input(question));
  if (to_text(layout) != to_text(layout_of({.microbatch = layout.microbatch})))
    throw UsageError("--meshes chooses the degrees itself: give only mbs in --layout");
  if (question.global_batch == 0) question.global_batch = layout.microbatch * kMeshMicrobatches;
  if (question.global_batch % layout.microbatch != 0)
    throw UsageError(fmt::format("--global-batch {} holds no whole number of micro-batches of {}: change one",
                                 question.global_batch, layout.microbatch));
  return {.samples = layout.microbatch,
          .microbatches = question.global_batch / layout.microbatch,
          .clusters = groups,
          .between = slowest_between(cluster),
          .solver = machine_solver({.patience = kSolverPatience})};
}

/// Returns the simulated step of each site alone; empty where there is one site.
ordered_json steps_alone(const PricedSites& priced, const PipelineQuestion& asked) {
  ordered_json alone = ordered_json::array();
  for (std::size_t site = 0; site < priced.names.size() && priced.names.size() > 1; ++site) {
    const auto one = PipelinePlanner(priced.alone(site), asked).fastest();
    const ordered_json seconds =
        one ? ordered_json(simulated_step(priced.alone(site), *one, asked).count()) : ordered_json(nullptr);
    alone.push_back({{"site", priced.names[site]}, {"step_time_s", seconds}});
  }
  return alone;
}

/// A question with the prices of its graph.
struct AskedGraph {
  PricedSites priced;
  PipelineQuestion asked;
};

AskedGraph asked_graph(const PartitionArguments& arguments) {
  QuestionArguments question = arguments.question;
  const ClusterSpec cluster = cluster_input(question.cluster);
  PipelineQuestion asked = pipeline_asked(question, cluster, arguments.groups);
  PricedSites priced = priced_sites(question, cluster);
  if (asked.clusters == 0) asked.clusters = usual_groups(priced.pricings.front()->graph()->nodes.size());
  return {std::move(priced), std::move(asked)};
}

/// Returns how good a sharding is, and who says so.
std::string proof_text(const GraphSharding& sharding) {
  if (sharding.exact) return fmt::format("no sharding is cheaper, by {}", sharding.method);
  const double gap = std::max(0.0, 100 * (1 - sharding.bound / sharding.cost));  // never "-0.0"
  if (sharding.method == "elimination")
    return fmt::format(
        "another sharding may be {:.1f} % cheaper at most; with the package coinor-cbc or glpk-utils it may be solved "
        "exactly",
        gap);
  return fmt::format("another sharding may be {:.1f} % cheaper at most, as far as {} has proved in {:.0f} s", gap,
                     sharding.method, kSolverPatience.count());
}

void print_pipeline(const PricedSites& priced, const PipelineQuestion& asked, const GraphPipeline& found, double step,
                    const ordered_json& alone) {
  const Pricing& pricing = *priced.pricings.front();
  print_text(fmt::format("{}, {} micro-batches of {}; stages are made of {} groups of nodes\n\n", pricing.model().name,
                         asked.microbatches, asked.samples, found.clusters));
  print_text(table_of(pricing.graph()->nodes, priced, found));
  print_text(fmt::format("\nstep time {} simulated, {} by the sum of the stages and the slowest\n", duration_text(step),
                         duration_text(found.objective.count())));
  for (const ordered_json& site : alone)
    print_text(fmt::format("{} alone: {}\n", site["site"].get<std::string>(),
                           site["step_time_s"].is_null() ? "does not fit" : duration_text(site["step_time_s"])));
  for (std::size_t i = 0; i < found.stages.size(); ++i) {
    print_note(fmt::format("stage {}: {}", i, proof_text(found.stages[i].sharding)));
  }
}

}  // namespace

int partition_meshes(const PartitionArguments& arguments) {
  const AskedGraph graph = asked_graph(arguments);
  const PricedSites& priced = graph.priced;
  const PipelineQuestion& asked = graph.asked;
  const std::vector<GraphNode>& nodes = priced.pricings.front()->graph()->nodes;
  const std::optional<GraphPipeline> found = PipelinePlanner(priced.sites(), asked).fastest();
  if (!found) {
    print_note("plumb: no stages fit the devices' memory: use more devices, or a smaller micro-batch (mbs)");
    return kInfeasible;
  }
  const double step = simulated_step(priced.sites(), *found, asked).count();
  const ordered_json alone = steps_alone(priced, asked);
  if (!arguments.json) {
    print_pipeline(priced, asked, *found, step, alone);
    return kDone;
  }
  ordered_json stages = ordered_json::array();
  for (const StagePlan& stage : found->stages) stages.push_back(stage_json(nodes, priced, stage));
  print_answer(json_answer({{"model", priced.pricings.front()->model().name},
                            {"samples", asked.samples},
                            {"microbatches", asked.microbatches},
                            {"clusters", found->clusters},
                            {"objective_s", found->objective.count()},
                            {"slowest_stage_s", found->slowest.count()},
                            {"step_time_s", step},
                            {"stages", stages},
                            {"one_site_alone", alone}}));
  return kDone;
}

std::optional<Seconds> objective_of_any_sharding(const PartitionArguments& arguments) {
  const AskedGraph graph = asked_graph(arguments);
  const std::optional<GraphPipeline> found = PipelinePlanner(graph.priced.sites(), graph.asked).fastest();
  if (!found) return std::nullopt;
  return found->objective;
}

}}  // namespace plumb::tools
