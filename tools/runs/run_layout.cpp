#include "tools/runs/run_layout.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "planner/spec/rank_layout.h"
#include "schedules/error.h"
#include "tools/io/console.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

std::vector<RankMesh> meshes_of_option(const std::string& text, int pipeline) {
  std::vector<RankMesh> meshes = read_option([&] {
    try {
      return parse_meshes(text, ',');
    } catch (const SpecError& error) {
      throw InputError(fmt::format("--meshes: {}", error.what()));
    }
  });
  if (static_cast<int>(meshes.size()) != pipeline)
    throw InputError(fmt::format("--meshes {}: there are {} pipeline ranks, give each one a mesh", text, pipeline));
  return meshes;
}

}  // namespace

std::vector<StageMesh> stage_meshes(const std::vector<RankMesh>& meshes) {
  std::vector<StageMesh> stages;
  for (const RankMesh& mesh : meshes) stages.push_back({.data = mesh.data, .tensor = mesh.tensor});
  return stages;
}

Plan on_meshes(Plan plan, const std::string& meshes) {
  if (meshes.empty()) return plan;
  Layout& layout = plan.layout;
  layout.meshes = meshes_of_option(meshes, layout.pipeline);
  layout.tensor = 1;
  layout = with_equal_meshes_plain(std::move(layout));
  if (const auto devices = static_cast<int>(devices_of(layout)); devices != plan.cluster.devices) {
    print_note(fmt::format("the meshes need {} devices, the plan's cluster has {}: priced on {} such devices", devices,
                           plan.cluster.devices, devices));
    if (!plan.cluster.network) plan.cluster.devices_per_node = std::max(plan.cluster.devices_per_node, devices);
    plan.cluster = resize(plan.cluster, devices);
  }
  plan.prediction.reset();
  return plan;
}

std::optional<ReshardingKind> resharding_kind(const std::string& name) {
  for (const ReshardingKind kind : {ReshardingKind::kDirect, ReshardingKind::kAllGather, ReshardingKind::kBroadcast})
    if (resharding_name(kind) == name) return kind;
  return std::nullopt;
}

RunSpec with_resharding(RunSpec spec, const MeshArguments& ranks) {
  if (spec.meshes.empty() && ranks.meshes.empty() && !ranks.reshard.empty())
    throw UsageError("--reshard is for messages between meshes of different shape: give --meshes");
  if (ranks.reshard == "direct") spec.resharding = Resharding::kDirect;
  if (ranks.reshard == "broadcast") spec.resharding = Resharding::kBroadcast;
  return spec;
}

RunSpec with_meshes(RunSpec spec, const MeshArguments& ranks) {
  if (!ranks.meshes.empty()) spec.meshes = stage_meshes(meshes_of_option(ranks.meshes, spec.grid.pipeline));
  return with_resharding(std::move(spec), ranks);
}

RunSpec with_state(RunSpec spec, const StateArguments& state) {
  if (state.recompute_every > 0) {
    spec.rebuild = Recompute::kFull;
    spec.rebuild_layers = state.recompute_every;
  }
  spec.layerwise = spec.layerwise || state.zero_layerwise;
  if (state.zero_by == "layer") spec.shard_by = ShardBy::kLayer;
  return spec;
}

bool has_replicas(const RunSpec& spec) {
  return spec.grid.data * spec.grid.context > 1 ||
         std::ranges::any_of(spec.meshes, [](const StageMesh& mesh) { return mesh.data > 1; });
}

}}  // namespace plumb::tools
