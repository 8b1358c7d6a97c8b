#pragma once
// Changes of one axis of a layout that make its step shorter.

#include <string>
#include <vector>

#include "planner/evaluate/evaluation.h"
#include "planner/price/pricing.h"
#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

struct LayoutChange {
  std::string change;  ///< the keys that differ, as "mbs=2" or "dp=4,tp=2"
  Evaluation evaluation;
};

/// Returns the best layout along each axis (tensor, pipeline, context, expert parallelism, chunks and schedule, ZeRO,
/// micro-batch, recomputation, offload, sequence parallelism, buckets), all other keys as they are, where it fits and is
/// faster: the fastest first. Each layout counts once.
std::vector<LayoutChange> layout_changes(Pricing& pricing, const Layout& layout, Seconds step);

}}  // namespace plumb::planner
