#include "tools/runs/run_layout.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "schedules/error.h"
#include "tools/io/usage.h"

namespace plumb { inline namespace tools {
namespace {

[[noreturn]] void refuse_meshes(std::string_view item) {
  throw UsageError(fmt::format(
      "--meshes: \"{}\" is no mesh: give each pipeline rank its tensor ranks and replicas, as in tp2,dp2 or tp4,dp2tp2",
      item));
}

StageMesh parse_mesh(std::string_view item) {
  StageMesh mesh;
  bool has_data = false, has_tensor = false;
  for (std::string_view left = item; !left.empty() || item.empty();) {
    const bool is_data = left.starts_with("dp"), is_tensor = left.starts_with("tp");
    if (!is_data && !is_tensor) refuse_meshes(item);
    int degree = 0;
    const auto [end, error] = std::from_chars(left.data() + 2, left.data() + left.size(), degree);
    if (error != std::errc() || degree < 1 || (is_data && has_data) || (is_tensor && has_tensor)) refuse_meshes(item);
    (is_data ? mesh.data : mesh.tensor) = degree;
    (is_data ? has_data : has_tensor) = true;
    left.remove_prefix(static_cast<std::size_t>(end - left.data()));
  }
  return mesh;
}

}  // namespace

std::vector<StageMesh> parse_meshes(const std::string& text) {
  std::vector<StageMesh> meshes;
  for (std::string_view left = text;;) {
    const std::size_t comma = left.find(',');
    meshes.push_back(parse_mesh(left.substr(0, comma)));
    if (comma == std::string_view::npos) return meshes;
    left.remove_prefix(comma + 1);
  }
}

RunSpec with_meshes(RunSpec spec, const MeshArguments& ranks) {
  if (!ranks.meshes.empty()) {
    spec.meshes = parse_meshes(ranks.meshes);
    if (static_cast<int>(spec.meshes.size()) != spec.grid.pipeline)
      throw InputError(fmt::format("--meshes {}: there are {} pipeline ranks, give each one a mesh", ranks.meshes,
                                   spec.grid.pipeline));
  } else if (!ranks.reshard.empty()) {
    throw UsageError("--reshard is for messages between meshes of different shape: give --meshes");
  }
  if (ranks.reshard == "direct") spec.resharding = Resharding::kDirect;
  if (ranks.reshard == "broadcast") spec.resharding = Resharding::kBroadcast;
  return spec;
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
