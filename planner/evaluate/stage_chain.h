#pragma once
// The model as a chain of nodes between which stages are cut, with what each takes in a layout, and what its stages can
// hold: one device may be slower than another, or have less memory.
//
//   fastest_split(stage_chain(pricing, layout, schedule.stages))

#include <vector>

#include "planner/partition/chain_partition.h"
#include "planner/price/pricing.h"
#include "planner/spec/layout.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

struct StageChain {
  Chain chain;  ///< the nodes of a layer graph; or transformer layers, with the embedding and the head at the ends
  ChainLimits limits;  ///< of the stages
};

/// Memory counts the micro-batches in flight under 1F1B, and all of them under GPipe. Ranks that are meshes of different
/// shape differ in speed, and their memory is not limited here.
StageChain stage_chain(Pricing& pricing, const Layout& layout, const std::vector<StagePlace>& stages);

/// Returns [model part] nodes: the split whose slowest stage is fastest among those that fit the devices, or among all
/// where none fits. There is a node for each part.
std::vector<int> fastest_split(StageChain stages);

}}  // namespace plumb::planner
