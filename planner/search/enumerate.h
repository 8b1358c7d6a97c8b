#pragma once
// Every layout that a request leaves open.
//
// Degrees dp, tp, pp: all divisors of the devices whose product they are. Micro-batch: all divisors of a replica's
// batch. Schedules: gpipe and 1f1b on one chunk a rank, interleaved on each number of chunks above 1 that divides the
// layers of a rank (rounded down); with one rank, 1f1b alone. ZeRO 0 to 3 where there are replicas, sequence
// parallelism with and without where there is a tensor group, recomputation none, selective, full. Keys that the
// request fixes have that value alone. Simplest first in every key, so that of equals the simplest comes first.

#include <string>
#include <vector>

#include "planner/spec/layout.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/training_spec.h"

namespace plumb { inline namespace planner {

/// A layout, or several at once by the keys that decide, that lost; and why.
struct Rejection {
  LayoutRequest layout;
  std::string reason;
};

struct Enumeration {
  std::vector<Layout> layouts;       ///< without conflict (search/layout_conflict.h)
  std::vector<Rejection> conflicts;  ///< each with the keys that cause it
};

/// Throws SpecError if more than kMostLayouts (schedules/limits.h) are open.
Enumeration enumerate_layouts(const ModelSpec& model, const TrainingSpec& training, int devices,
                              const LayoutRequest& request);

}}  // namespace plumb::planner
