#pragma once
// Messages between pipeline ranks that are meshes of different shape (Zheng et al. 2022, Alpa; spec/rank_layout.h).
//
//   priced = with_handovers(pricing, layout, order, std::move(priced), ReshardingKind::kBroadcast);
//
// Such a message is a resharding of the whole tensor of a micro-batch (price/collective/resharding.h), which keeps the
// way between the two ranks for as long as it takes.

#include <optional>

#include "planner/evaluate/priced_layout.h"
#include "planner/price/collective/resharding.h"

namespace plumb { inline namespace planner {

/// Returns the prices with the handovers of the layout's meshes, each of that kind or of the fastest. A layout without
/// meshes has none.
PricedLayout with_handovers(Pricing& pricing, const Layout& layout, const Schedule& order, PricedLayout priced,
                            std::optional<ReshardingKind> kind);

}}  // namespace plumb::planner
