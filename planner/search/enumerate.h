#pragma once
// Every layout that a request leaves open and that the framework of its stack runs (search/stack_conflict.h).
//
// Degrees dp, tp, pp, cp: all divisors of the devices whose product they are. cp is 1 unless a framework trains and
// sequences are long, and where the other three are fixed. Micro-batch: all divisors of a replica's batch. Schedules: those that the named
// framework runs, and 1f1b, gpipe and interleaved where none is named; interleaved ones on each number of chunks above 1
// that divides the layers of a rank (rounded down); with one rank, 1f1b alone. ZeRO 0 to 3 where there are replicas, sequence
// parallelism with and without where there is a tensor group, recomputation none, selective, full. Keys that the
// request fixes have that value alone. Simplest first in every key, so that of equals the simplest comes first.

#include <string>
#include <vector>

#include "planner/price/pricing.h"
#include "planner/search/layout_conflict.h"
#include "planner/spec/layout.h"

namespace plumb { inline namespace planner {

struct Enumeration {
  std::vector<Layout> layouts;       ///< without conflict
  std::vector<Rejection> conflicts;  ///< each with the keys that cause it
};

/// Throws SpecError if more than kMostLayouts (schedules/limits.h) are open.
Enumeration enumerate_layouts(const Pricing& pricing, const LayoutRequest& request);

}}  // namespace plumb::planner
