#include "planner/shard/mesh_partition.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "planner/evaluate/layout_order.h"
#include "planner/evaluate/priced_layout.h"
#include "planner/evaluate/stage_chain.h"
#include "planner/search/layout_conflict.h"
#include "planner/shard/mesh_pipeline.h"
#include "planner/shard/mesh_sizes.h"
#include "planner/spec/cluster_sites.h"
#include "planner/spec/rank_layout.h"
#include "schedules/error.h"

namespace plumb { inline namespace planner {
namespace {

void require_open_degrees(const Pricing& pricing, const Layout& asked) {
  if (site_count(pricing.cluster()) > 1)
    throw SpecError("meshes of different shape lie on one site: give a cluster of equal devices");
  if (pricing.model().experts > 0)
    throw SpecError("meshes of different shape: mixtures of experts do not go over them");
  const bool has_degrees = asked.data * asked.tensor * asked.pipeline * asked.context * asked.expert > 1;
  if (has_degrees || asked.chunks > 1 || !asked.split.empty() || !asked.meshes.empty())
    throw SpecError("--meshes chooses the degrees and the stages itself: leave dp, tp, pp, cp, ep, v and split away");
}

/// True for transformer layers of one kind, whose stages differ by their ends and their number alone.
bool layers_are_alike(const Pricing& pricing) {
  if (pricing.graph() != nullptr) return false;
  const std::vector<int>& kinds = pricing.kind_of_layer();
  return std::all_of(kinds.begin() + 1, kinds.end() - 1, [&](int kind) { return kind == kinds[1]; });
}

/// Stages of groups of layers, priced as those of layouts.
class MeshPartitioner {
 public:
  MeshPartitioner(Pricing& pricing, const Layout& asked, int groups)
      : pricing_(pricing), asked_(asked), meshes_(possible_meshes(pricing, asked)) {
    Layout whole = asked;  // on one device
    StageChain layers = stage_chain(pricing, whole, order_of(whole, 1).stages);
    const auto count = static_cast<int>(layers.chain.seconds.size());
    layers.chain.state_bytes.clear();
    layers.chain.activation_bytes.clear();
    sizes_ = *chain_partition(layers.chain, {.parts = std::min(groups, count)});
  }

  std::optional<MeshPartition> run() {
    const DeviceSpec& device = pricing_.cluster().device;
    const double bytes = static_cast<double>(device.memory_bytes - device.reserved_bytes);
    MeshPipelineProblem problem{.layers = static_cast<int>(sizes_.size()),
                                .microbatches = microbatches_of(pricing_.training(), asked_),
                                .devices = {pricing_.cluster().devices},
                                .bytes = {bytes / (1 + pricing_.memory_headroom(asked_))},
                                .uses_all_devices = true};
    for (const RankMesh& mesh : meshes_) problem.meshes.push_back({.devices = mesh.data * mesh.tensor});
    problem.stage = [this](int begin, int end, int mesh) { return stage(begin, end, mesh); };
    const std::optional<MeshPipeline> found = fastest_pipeline(problem);
    if (!found) return std::nullopt;
    MeshPartition partition{.layout = asked_,
                            .objective = Seconds{found->seconds},
                            .slowest = Seconds{found->slowest},
                            .groups = problem.layers};
    Layout& layout = partition.layout;
    layout.pipeline = static_cast<int>(found->stages.size());
    for (const PipelineStage& stage : found->stages) {
      layout.meshes.push_back(meshes_[static_cast<std::size_t>(stage.mesh)]);
      layout.split.push_back(layers_of(stage.begin, stage.end));
    }
    layout = with_equal_meshes_plain(std::move(layout));
    return partition;
  }

 private:
  int layers_of(int begin, int end) const {
    int layers = 0;
    for (int group = begin; group < end; ++group) layers += sizes_[static_cast<std::size_t>(group)];
    return layers;
  }

  MeshCost stage(int begin, int end, int mesh) {
    const int before = layers_of(0, begin), inside = layers_of(begin, end);
    const int behind = layers_of(end, static_cast<int>(sizes_.size()));
    const std::tuple key = layers_are_alike(pricing_)
                               ? std::tuple(std::min(before, 1), inside, std::min(behind, 1), mesh)
                               : std::tuple(before, inside, behind, mesh);
    const auto [known, is_new] = costs_.try_emplace(key);
    if (is_new) known->second = priced(before, inside, behind, meshes_[static_cast<std::size_t>(mesh)]);
    return known->second;
  }

  MeshCost priced(int before, int inside, int behind, const RankMesh& mesh) {
    Layout layout = asked_;
    layout.microbatch = asked_.microbatch / mesh.data;
    layout.data = mesh.data;
    layout.tensor = mesh.tensor;
    layout.sequence_parallel = asked_.sequence_parallel && mesh.tensor > 1;
    for (const int layers : {before, inside, behind})
      if (layers > 0) layout.split.push_back(layers);
    layout.pipeline = static_cast<int>(layout.split.size());
    const CostTable costs = cost_table(price_layout(pricing_, layout, order_of(layout, 2 * layout.pipeline)));
    const std::int32_t own = before > 0 ? 1 : 0;
    const auto seconds = [&](Op op) { return to_seconds(duration_of(costs, {.op = op, .stage = own})).count(); };
    const double once = seconds(Op::kReduceGrad) + seconds(Op::kUnshard) + seconds(Op::kOptimizerStep);
    const StageMemory& memory = costs.stages[static_cast<std::size_t>(own)].memory;
    return {.seconds = seconds(Op::kForward) + seconds(Op::kBackward) +
                       once / static_cast<double>(microbatches_of(pricing_.training(), asked_)),
            .state_bytes = static_cast<double>(
                memory.parameter_bytes + memory.gradient_bytes + memory.optimizer_bytes + memory.unsharded_bytes +
                memory.recompute_bytes + std::max(memory.forward_workspace_bytes, memory.backward_workspace_bytes)),
            .in_flight_bytes = static_cast<double>(memory.forward_bytes)};
  }

  Pricing& pricing_;
  Layout asked_;
  std::vector<RankMesh> meshes_;
  std::vector<int> sizes_;                                    ///< [group] layers
  std::map<std::tuple<int, int, int, int>, MeshCost> costs_;  ///< [layers before, inside, behind; mesh]
};

}  // namespace

std::vector<RankMesh> possible_meshes(const Pricing& pricing, const Layout& asked) {
  const ClusterSpec& cluster = pricing.cluster();
  const int node = std::min(cluster.devices_per_node, cluster.devices);
  std::vector<RankMesh> meshes;
  for (const int devices : mesh_sizes(cluster)) {
    for (int tensor = 1; tensor <= std::min(devices, node); ++tensor) {
      const RankMesh mesh{.data = devices / tensor, .tensor = tensor};
      if (devices % tensor != 0 || node % tensor != 0 || asked.microbatch % mesh.data != 0) continue;
      Layout alone = asked;
      alone.microbatch /= mesh.data;
      alone.data = mesh.data;
      alone.tensor = mesh.tensor;
      alone.sequence_parallel = asked.sequence_parallel && tensor > 1;
      if (!layout_conflict(pricing.model(), pricing.training(), devices, alone)) meshes.push_back(mesh);
    }
  }
  return meshes;
}

std::optional<MeshPartition> mesh_partition(Pricing& pricing, const Layout& asked, int groups) {
  require_open_degrees(pricing, asked);
  return MeshPartitioner(pricing, asked, groups).run();
}

}}  // namespace plumb::planner
