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

/// Meshes, resharding, recomputation of every so many layers, what ZeRO divides: those that are asked for. Throws
/// InputError if one is asked for that needs another, or meshes are not one for each pipeline rank.
void apply_layout_arguments(RunSpec& spec, const RunArguments& arguments);

/// Whether some stage has copies whose gradients are reduced.
bool has_replicas(const RunSpec& spec);

}}  // namespace plumb::tools
