#pragma once
// The layout of a space that lacks least memory, where none fits.

#include <optional>

#include "planner/price/pricing.h"
#include "planner/search/bounds.h"
#include "planner/spec/layout.h"
#include "planner/spec/layout_space.h"

namespace plumb { inline namespace planner {

struct NearestMiss {
  Layout layout;
  std::optional<MemoryShortfall> shortfall;  ///< nothing: it fits
};

/// Returns the layout that lacks least; nothing if none exists. The first that fits ends the search.
std::optional<NearestMiss> nearest_miss(Pricing& pricing, const LayoutSpace& space);

/// Returns the same of the layouts that save memory by every key at once, which are few.
std::optional<NearestMiss> frugal_miss(Pricing& pricing, const LayoutSpace& space);

}}  // namespace plumb::planner
