#pragma once
// What `plumb run` may change of how a plan's or a network's model lies over its ranks.

#include <string>
#include <vector>

#include "executor/run_spec.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// "tp2,dp2" or "tp2,dp2tp2": a mesh for each pipeline rank, whose tensor ranks (tp) and replicas (dp) are 1 where they
/// are not named. Throws InputError unless it is such a list.
std::vector<StageMesh> parse_meshes(const std::string& text);

/// Returns the spec on the meshes that are asked for. Throws InputError unless there is one for each pipeline rank,
/// UsageError if a resharding is asked for without meshes.
RunSpec with_meshes(RunSpec spec, const MeshArguments& ranks);

/// Returns the spec with the recomputation that is asked for, and with what ZeRO is asked to divide.
RunSpec with_state(RunSpec spec, const StateArguments& state);

/// True if some stage has copies whose gradients are reduced.
bool has_replicas(const RunSpec& spec);

}}  // namespace plumb::tools
