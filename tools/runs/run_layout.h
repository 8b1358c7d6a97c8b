#pragma once
// Options of `plumb run` change how the model of a plan or of a network lies over its ranks.

#include <string>
#include <vector>

#include "executor/run_spec.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// Returns a mesh for each pipeline rank of "tp2,dp2" or "tp2,dp2tp2"; tensor ranks (tp) and replicas (dp) that are not
/// named are 1. Throws UsageError unless the text is such a list.
std::vector<StageMesh> parse_meshes(const std::string& text);

/// Sets the meshes, the resharding, the recomputation of every so many layers and the unit that ZeRO divides, where the
/// arguments ask for them. Throws UsageError if a resharding is asked for without meshes, and InputError if there is
/// not one mesh for each pipeline rank.
void apply_layout_arguments(RunSpec& spec, const RunArguments& arguments);

/// Returns true if some stage has copies whose gradients are reduced.
bool has_replicas(const RunSpec& spec);

}}  // namespace plumb::tools
