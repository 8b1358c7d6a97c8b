#pragma once
// Options of `plumb run` change how the model of a plan or of a network lies over its ranks.

#include <optional>
#include <string>
#include <vector>

#include "executor/spec/run_spec.h"
#include "planner/price/collective/resharding.h"
#include "planner/search/plan.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// Returns the meshes as the executor has them.
std::vector<StageMesh> stage_meshes(const std::vector<RankMesh>& meshes);

/// Returns the plan on meshes in place of its own data and tensor ranks ("tp2,dp2"); the plan itself if the text is
/// empty. If the meshes need another number of devices than the plan's cluster has, it has so many, in one node if it
/// has no network, with a note on stderr. Throws UsageError if the text is no list of meshes, and InputError unless it has one for each pipeline rank.
Plan on_meshes(Plan plan, const std::string& meshes);

/// Returns the kind of that name; nothing if it is empty.
std::optional<ReshardingKind> resharding_kind(const std::string& name);

/// Returns the spec with the resharding that is asked for. Throws UsageError if it has no meshes.
RunSpec with_resharding(RunSpec spec, const MeshArguments& ranks);

/// Returns the spec on the meshes that are asked for. Throws as on_meshes and with_resharding.
RunSpec with_meshes(RunSpec spec, const MeshArguments& ranks);

/// Returns the spec with the recomputation that is asked for, and with the unit that ZeRO is asked to divide.
RunSpec with_state(RunSpec spec, const StateArguments& state);

/// Returns true if some stage has copies whose gradients are reduced.
bool has_replicas(const RunSpec& spec);

}}  // namespace plumb::tools
