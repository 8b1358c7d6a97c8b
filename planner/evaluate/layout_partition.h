#pragma once
// The layers of each model part of a layout: the user's split, the stack's, or the one that costs balance.

#include <vector>

#include "planner/partition/balanced_partition.h"
#include "planner/price/pricing.h"
#include "planner/spec/layout.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace planner {

/// Returns the split of the layers over the order's `parts` model parts. Throws SpecError if the layout's split does not
/// fit model and schedule.
Partition layout_partition(Pricing& pricing, const Layout& layout, const Schedule& schedule, int parts);

/// Returns the split that costs balance (partition/balanced_partition.h; on several sites evaluate/stage_chain.h),
/// whatever the rule of the layout's stack. `stages` are those of its order. The model has a layer for each part.
Partition balanced_split(Pricing& pricing, const Layout& layout, const std::vector<StagePlace>& stages);

}}  // namespace plumb::planner
