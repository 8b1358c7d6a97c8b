#pragma once
// Options of `plumb run` change how the model of a plan or of a network lies over its ranks.

#include <string>
#include <vector>

#include "executor/spec/run_spec.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// Returns a mesh for each pipeline rank of "tp2,dp2" or "tp2,dp2tp2"; tensor ranks (tp) and replicas (dp) that are not
/// named are 1. Throws UsageError unless the text is such a list.
std::vector<StageMesh> parse_meshes(const std::string& text);

/// Returns the spec on the meshes that are asked for. Throws InputError unless there is one for each pipeline rank, and
/// UsageError if a resharding is asked for without meshes.
RunSpec with_meshes(RunSpec spec, const MeshArguments& ranks);

/// Returns the spec with the recomputation that is asked for, and with the unit that ZeRO is asked to divide.
RunSpec with_state(RunSpec spec, const StateArguments& state);

/// Returns true if some stage has copies whose gradients are reduced.
bool has_replicas(const RunSpec& spec);

}}  // namespace plumb::tools
