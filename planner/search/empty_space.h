#pragma once
// The reason why a space holds no layout at all, where no rule says so.

#include <string>

#include "planner/price/pricing.h"
#include "planner/spec/layout_space.h"

namespace plumb { inline namespace planner {

/// Returns one sentence, which names the keys without any of which there would be layouts.
std::string why_empty(Pricing& pricing, const LayoutSpace& space);

}}  // namespace plumb::planner
