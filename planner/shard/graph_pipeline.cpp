#include "planner/shard/graph_pipeline.h"

#include <algorithm>

#include <fmt/format.h>

#include "planner/partition/chain_partition.h"
#include "planner/price/layer/graph_price.h"
#include "planner/shard/mesh_sizes.h"
#include "schedules/error.h"
#include "schedules/generators/catalogue.h"
#include "schedules/passes/lower.h"
#include "simulator/simulate.h"

namespace plumb { inline namespace planner {
namespace {

/// Entries of a table while the stages of a graph are searched that no tables solve exactly. The stages of the answer
/// have larger ones.
constexpr std::size_t kEntriesOfDenseGraph = std::size_t{1} << 12;

/// Returns the first node of each use of a block, and of each node outside blocks, and the end.
std::vector<int> unit_starts(const std::vector<GraphNode>& nodes) {
  std::vector<int> starts;
  for (int node = 0; node < std::ssize(nodes); ++node)
    if (node == 0 || nodes[node].segment < 0 || nodes[node].segment != nodes[node - 1].segment) starts.push_back(node);
  starts.push_back(static_cast<int>(nodes.size()));
  return starts;
}

/// Returns the first node of each cluster of about equal time, and the end. Blocks stay whole.
std::vector<int> cluster_starts(Pricing& pricing, const PipelineQuestion& question) {
  const GraphTables& graph = *pricing.graph();
  const std::vector<int> units = unit_starts(graph.nodes);
  Chain chain;
  for (std::size_t unit = 0; unit + 1 < units.size(); ++unit) {
    chain.seconds.emplace_back(0);
    for (int node = units[unit]; node < units[unit + 1]; ++node) {
      const LayerPrice price = graph_node_price(pricing.kernels(), graph.nodes[node], question.samples);
      chain.seconds.back() += total(price.forward) + total(whole_backward(price));
    }
    chain.cut_bytes.push_back(static_cast<double>(graph.cuts[units[unit]].elements));
  }
  chain.cut_bytes.push_back(0);
  const int parts = std::min(question.clusters, static_cast<int>(units.size()) - 1);
  std::vector<int> first = {0};
  int unit = 0;
  const std::optional<std::vector<int>> counts = chain_partition(chain, {.parts = parts});
  for (const int count : *counts) first.push_back(units[unit += count]);
  return first;
}

/// Returns the groups of the two axes of `outer` times `inner` devices in a row.
std::array<GroupPlacement, 2> groups_of(int outer, int inner, int devices_per_node) {
  std::array<std::vector<int>, 2> ranks;
  for (int i = 0; i < outer; ++i) ranks[0].push_back(i * inner);
  for (int i = 0; i < inner; ++i) ranks[1].push_back(i);
  return {placement_of(ranks[0], devices_per_node), placement_of(ranks[1], devices_per_node)};
}

/// The link between two stages of one site: between nodes where there are several.
LinkCost link_within(const Pricing& pricing) {
  return pricing.cluster().devices > pricing.cluster().devices_per_node ? pricing.collectives().network
                                                                        : pricing.collectives().node;
}

}  // namespace

PipelinePlanner::PipelinePlanner(std::vector<PipelineSite> sites, const PipelineQuestion& question)
    : sites_(std::move(sites)),
      question_(question),
      first_(cluster_starts(*sites_.front().pricing, question)),
      kept_(kept_outputs(sites_.front().pricing->graph()->nodes)) {
  for (int site = 0; site < std::ssize(sites_); ++site) {
    const ClusterSpec& cluster = sites_[site].pricing->cluster();
    for (const int devices : mesh_sizes(cluster)) {
      for (int inner = devices; inner >= 1; --inner) {
        const int outer = devices / inner;
        const bool whole_rows =
            inner <= cluster.devices_per_node ? cluster.devices_per_node % inner == 0 || outer == 1 : inner == devices;
        if (devices % inner != 0 || !whole_rows || (inner == 1 && devices > 1)) continue;
        if (devices <= cluster.devices_per_node && outer > inner) continue;  // in a node the two axes are alike
        add_meshes(site, groups_of(outer, inner, cluster.devices_per_node), devices);
      }
    }
  }
}

/// Adds a mesh in each way to save memory: a node whose weights are divided is worth a price, and forwards may run again.
void PipelinePlanner::add_meshes(int site, const std::array<GroupPlacement, 2>& groups, int devices) {
  const int free = static_cast<int>(meshes_.size());
  for (const double price : {0, 1, 100}) {
    const int keeping = static_cast<int>(meshes_.size());
    for (const bool rebuilds : {false, true})
      meshes_.push_back({.site = site,
                         .devices = devices,
                         .groups = groups,
                         .memory_price = price,
                         .rebuilds = rebuilds,
                         .free = free,
                         .keeping = keeping});
  }
}

/// Returns a number that segments of the same costs share.
int PipelinePlanner::kind_of(int begin, int end) {
  const auto [found, is_new] = kinds_of_segments_.try_emplace({begin, end}, 0);
  if (!is_new) return found->second;
  const GraphTables& graph = *sites_.front().pricing->graph();
  std::vector<int> key;
  int cluster = begin;
  for (int node = first_[begin]; node < first_[end]; ++node) {
    if (node == first_[cluster]) key.push_back(-1 - cluster++ + begin);
    key.push_back(2 * graph.kind_of_node[node] + (kept_[node] ? 1 : 0));
    for (const int input : graph.nodes[node].inputs) key.push_back(input < first_[begin] ? -1 : node - input);
  }
  found->second = kinds_.try_emplace(std::move(key), static_cast<int>(kinds_.size())).first->second;
  return found->second;
}

/// Returns a stage on a mesh; its time is infinite where a mesh that saves less memory always fits.
const PipelinePlanner::Priced& PipelinePlanner::priced(int begin, int end, int mesh) {
  const auto [found, is_new] = priced_.try_emplace({mesh, kind_of(begin, end)});
  if (is_new) found->second = meshes_[mesh].rebuilds ? rebuilt(begin, end, mesh) : kept(begin, end, mesh);
  return found->second;
}

ShardingQuestion PipelinePlanner::question_of(int begin, int end, int mesh) {
  ShardingQuestion asked{.begin = first_[begin],
                         .end = first_[end],
                         .mesh = meshes_[mesh].groups,
                         .samples = question_.samples,
                         .microbatches = question_.microbatches};
  if (meshes_[mesh].memory_price > 0) {
    const Priced& free = priced(begin, end, meshes_[mesh].free);
    asked.seconds_per_parameter =
        meshes_[mesh].memory_price * free.cost.seconds / static_cast<double>(free.sharding.parameters);
  }
  return asked;
}

/// Returns the cost of a stage; if it rebuilds, each cluster keeps its input and its forward runs again.
MeshCost PipelinePlanner::cost_of(const GraphSharding& sharding, int begin, int end, int mesh) const {
  Pricing& pricing = *sites_[meshes_[mesh].site].pricing;
  const KernelPrices& kernels = pricing.kernels();
  const std::int64_t state = (kernels.element_bytes + kernels.gradient_bytes) * sharding.parameters +
                             optimizer_bytes_per_parameter(pricing.training()) * sharding.optimized;
  MeshCost cost{.seconds = sharding.cost.count(),
                .state_bytes = static_cast<double>(state),
                .in_flight_bytes = static_cast<double>(kernels.element_bytes * sharding.kept_elements)};
  if (!meshes_[mesh].rebuilds) return cost;
  cost.seconds += sharding.forward.count();
  cost.state_bytes += cost.in_flight_bytes / (end - begin);  // of the cluster that is rebuilt
  cost.in_flight_bytes = 0;
  for (int cluster = begin; cluster < end; ++cluster)
    cost.in_flight_bytes += input_bytes(pricing, sharding, begin, cluster);
  return cost;
}

PipelinePlanner::Priced PipelinePlanner::kept(int begin, int end, int mesh) {
  if (meshes_[mesh].memory_price > 0) {
    const Priced& free = priced(begin, end, meshes_[mesh].free);
    if (fits_always(free.cost, meshes_[mesh].site) || free.sharding.parameters == 0) return {};
  }
  ShardingQuestion asked = question_of(begin, end, mesh);
  asked.most_entries = most_entries_;
  Priced priced{.cost = {}, .sharding = cheapest_sharding(*sites_[meshes_[mesh].site].pricing, asked)};
  if (!priced.sharding.exact) most_entries_ = kEntriesOfDenseGraph;
  priced.cost = cost_of(priced.sharding, begin, end, mesh);
  return priced;
}

PipelinePlanner::Priced PipelinePlanner::rebuilt(int begin, int end, int mesh) {
  Priced priced = this->priced(begin, end, meshes_[mesh].keeping);
  if (priced.sharding.nodes.empty() || fits_always(priced.cost, meshes_[mesh].site)) return {};
  priced.cost = cost_of(priced.sharding, begin, end, mesh);
  return priced;
}

/// Returns a stage of the answer with its sharding by larger tables and by the solver, if that fits and is no dearer.
PipelinePlanner::Priced PipelinePlanner::proved(const PipelineStage& stage, double bytes, int in_flight) {
  const Priced found = priced(stage.begin, stage.end, stage.mesh);
  if (found.sharding.exact) return found;
  ShardingQuestion asked = question_of(stage.begin, stage.end, stage.mesh);
  asked.solver = question_.solver;
  Priced proved{.cost = {}, .sharding = cheapest_sharding(*sites_[meshes_[stage.mesh].site].pricing, asked)};
  proved.cost = cost_of(proved.sharding, stage.begin, stage.end, stage.mesh);
  const bool fits = proved.cost.state_bytes + in_flight * proved.cost.in_flight_bytes <= bytes;
  return fits && proved.cost.seconds <= found.cost.seconds ? proved : found;
}

/// Returns true if a stage fits with every stage of the longest pipeline behind it: then no memory need be saved.
bool PipelinePlanner::fits_always(const MeshCost& cost, int site) const {
  const DeviceSpec& device = sites_[site].pricing->cluster().device;
  return cost.state_bytes + 2 * clusters() * cost.in_flight_bytes <=
         static_cast<double>(device.memory_bytes - device.reserved_bytes);
}

/// Returns the bytes of a micro-batch that a device keeps of what a cluster reads: it lies as its first node's output.
double PipelinePlanner::input_bytes(Pricing& pricing, const GraphSharding& sharding, int begin, int cluster) const {
  const GraphTables& graph = *pricing.graph();
  const int node = first_[cluster];
  const std::vector<NodeAxis> axes = node_axes(graph.nodes, node);
  double parts = 1;
  for (std::size_t x = 0; x < 2; ++x) {
    const int axis = sharding.nodes[static_cast<std::size_t>(node - first_[begin])].axis[x];
    const GroupPlacement& group = x == 0 ? sharding.mesh[0] : sharding.mesh[1];
    if (axis >= 0 && axes[static_cast<std::size_t>(axis)].output.dimension >= 0) parts *= group.ranks;
  }
  return static_cast<double>(graph.cuts[node].elements * question_.samples * pricing.kernels().element_bytes) / parts;
}

StageTransfer PipelinePlanner::transfer(int cluster, int from, int to) const {
  const Pricing& pricing = *sites_[to].pricing;
  const GraphCut& cut = pricing.graph()->cuts[first_[cluster]];
  const auto bytes = static_cast<double>(question_.samples * pricing.kernels().element_bytes);
  const LinkCost link = from == to ? link_within(pricing) : question_.between;
  const double activations = static_cast<double>(cut.elements) * bytes / link.bytes_per_second,
               gradients = static_cast<double>(cut.gradient_elements) * bytes / link.bytes_per_second;
  return {.delay = 2 * link.latency.count() + activations + gradients, .occupied = std::max(activations, gradients)};
}

MeshPipelineProblem PipelinePlanner::problem() {
  MeshPipelineProblem problem{.layers = clusters(), .microbatches = question_.microbatches};
  for (const PipelineSite& site : sites_) {
    const DeviceSpec& device = site.pricing->cluster().device;
    problem.devices.push_back(site.pricing->cluster().devices);
    problem.bytes.push_back(static_cast<double>(device.memory_bytes - device.reserved_bytes));
  }
  for (const Mesh& mesh : meshes_) problem.meshes.push_back({.site = mesh.site, .devices = mesh.devices});
  problem.stage = [this](int begin, int end, int mesh) { return priced(begin, end, mesh).cost; };
  problem.transfer = [this](int cluster, int from, int to) { return transfer(cluster, from, to); };
  problem.uses_all_devices = question_.uses_all_devices;
  problem.eager = sites_.size() > 1;
  return problem;
}

GraphPipeline PipelinePlanner::planned(const MeshPipelineProblem& asked, MeshPipeline found) {
  GraphPipeline pipeline{.clusters = clusters()};
  for (std::size_t i = 0; i < found.stages.size(); ++i) {
    PipelineStage& stage = found.stages[i];
    const Mesh& mesh = meshes_[stage.mesh];
    const int in_flight = asked.in_flight(static_cast<int>(found.stages.size() - i));
    Priced proved = this->proved(stage, asked.bytes[mesh.site], in_flight);
    stage.cost = proved.cost;
    pipeline.stages.push_back({.begin = first_[stage.begin],
                               .end = first_[stage.end],
                               .site = mesh.site,
                               .mesh = mesh.groups,
                               .devices = mesh.devices,
                               .sharding = std::move(proved.sharding),
                               .rebuilds = mesh.rebuilds,
                               .peak_bytes = stage.cost.state_bytes + in_flight * stage.cost.in_flight_bytes});
  }
  const MeshPipeline timed = pipeline_of(asked, std::move(found.stages));
  pipeline.objective = Seconds{timed.seconds};
  pipeline.slowest = Seconds{timed.slowest};
  return pipeline;
}

std::optional<GraphPipeline> PipelinePlanner::fastest() {
  const MeshPipelineProblem asked = problem();
  std::optional<MeshPipeline> found = fastest_pipeline(asked);
  if (!found) return std::nullopt;
  return planned(asked, *std::move(found));
}

std::optional<GraphPipeline> PipelinePlanner::of_stages(const std::vector<NamedStage>& stages) {
  const MeshPipelineProblem problem = this->problem();
  std::vector<PipelineStage> chosen;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const NamedStage& named = stages[i];
    if (named.begin < 0 || named.begin >= named.end || named.end > clusters())
      throw SpecError(
          fmt::format("stage {}: {} to {} is no part of the {} clusters", i, named.begin, named.end, clusters()));
    PipelineStage best{.begin = named.begin, .end = named.end};
    for (int mesh = 0; mesh < std::ssize(meshes_); ++mesh) {
      if (meshes_[mesh].site != named.site || meshes_[mesh].devices != named.devices) continue;
      const MeshCost& cost = priced(named.begin, named.end, mesh).cost;
      const int in_flight = problem.in_flight(static_cast<int>(stages.size() - i));
      if (cost.state_bytes + in_flight * cost.in_flight_bytes > problem.bytes[named.site]) continue;
      if (cost.seconds >= best.cost.seconds) continue;
      best.mesh = mesh;
      best.cost = cost;
    }
    if (best.cost.seconds == MeshCost{}.seconds) return std::nullopt;
    chosen.push_back(best);
  }
  return planned(problem, pipeline_of(problem, std::move(chosen)));
}

Seconds simulated_step(const std::vector<PipelineSite>& sites, const GraphPipeline& pipeline,
                       const PipelineQuestion& question) {
  const int ranks = static_cast<int>(pipeline.stages.size());
  const Schedule order = make_schedule(sites.size() > 1 ? "eager-1f1b" : "1f1b",
                                       {.ranks = ranks, .microbatches = static_cast<int>(question.microbatches)});
  ChunkCosts chunk{.forward = {}, .input_grad = {}, .weight_grad = {}};
  for (const StagePlan& stage : pipeline.stages) {
    const Seconds rebuilt = stage.rebuilds ? stage.sharding.forward : Seconds{0};
    const Seconds backward = stage.sharding.cost - stage.sharding.forward + rebuilt;
    chunk.forward.push_back(stage.sharding.forward);
    chunk.backward.push_back(backward);
    chunk.input_grad.push_back(backward / 2);
    chunk.weight_grad.push_back(backward / 2);
  }
  CostTable costs = chunk_cost_table(ranks, chunk);
  for (int rank = 0; rank < ranks; ++rank) {
    const StagePlan& stage = pipeline.stages[static_cast<std::size_t>(rank)];
    const Pricing& pricing = *sites[stage.site].pricing;
    const std::int64_t scale = question.samples * pricing.kernels().element_bytes;
    costs.stages[rank].activation_message_bytes = pricing.graph()->cuts[stage.end].elements * scale;
    costs.stages[rank].gradient_message_bytes = pricing.graph()->cuts[stage.begin].gradient_elements * scale;
    if (rank == 0) continue;
    const StagePlan& before = pipeline.stages[static_cast<std::size_t>(rank - 1)];
    const bool far = before.site != stage.site;
    const LinkCost link = far                         ? question.between
                          : pricing.cluster().network ? pricing.collectives().network
                                                      : pricing.collectives().node;
    costs.links[{rank - 1, rank}] = link;
    costs.links[{rank, rank - 1}] = link;
  }
  return to_seconds(simulate(lower(order), costs, {.record_timeline = false}).makespan);
}

}}  // namespace plumb::planner
