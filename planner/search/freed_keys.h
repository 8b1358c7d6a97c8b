#pragma once
// The fewest of a user's pins without which something fits.
//
//   fewest_freed_keys(pricing, parse_layout_space("tp=1,zero=0,mbs=4"))    // {{"zero=0"}, dp=8,tp=1,...,zero=1,mbs=4}

#include <vector>

#include "planner/price/pricing.h"
#include "planner/spec/layout.h"
#include "planner/spec/layout_space.h"

namespace plumb { inline namespace planner {

struct FreedKeys {
  LayoutSpace keys;  ///< what the space says of the keys that are freed
  Layout layout;     ///< the fastest that then fits
};

/// Returns each set of keys that can be freed so that a layout fits, of the least number that has one; empty where
/// nothing fits whatever is freed, or nothing is pinned. A split is no such key. Throws as search_layouts does.
std::vector<FreedKeys> fewest_freed_keys(Pricing& pricing, const LayoutSpace& space);

}}  // namespace plumb::planner
