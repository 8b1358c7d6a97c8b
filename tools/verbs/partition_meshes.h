#pragma once
// `plumb partition GRAPH CLUSTER --meshes`: stages of a layer graph on meshes of their own, with operators divided in any
// way, as Alpa does.

#include <optional>

#include "schedules/time.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

/// The micro-batches of a step where --global-batch is not given.
inline constexpr int kMeshMicrobatches = 32;

/// Prints stages on meshes of their own, with each node's sharding.
int partition_meshes(const PartitionArguments& arguments);

/// Returns what Alpa's objective is for those stages; nothing if none fits.
std::optional<Seconds> objective_of_any_sharding(const PartitionArguments& arguments);

}}  // namespace plumb::tools
