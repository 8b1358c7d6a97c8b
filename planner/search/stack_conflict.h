#pragma once
// The layouts that a framework does not run (spec/stack_limits.h). A search leaves them out, and says by which rule. A
// layout whose keys a user names is predicted all the same: measured runs of changed frameworks are such layouts.

#include <optional>
#include <vector>

#include "planner/price/pricing.h"
#include "planner/search/layout_conflict.h"
#include "planner/spec/layout.h"
#include "planner/spec/layout_space.h"

namespace plumb { inline namespace planner {

/// Returns the rules of its stack that the layout breaks, each with the keys that it is about and a sentence with the
/// remedy. Empty for Plumb's own executor, which layout_conflict() knows.
std::vector<Rejection> stack_conflicts(const Pricing& pricing, const Layout& layout);

/// Returns the first rule that leaves the layout out of a search: one that it breaks by a key of which the space names no
/// value. Tensor groups that cross nodes are left out likewise, where the stack names that habit.
std::optional<Rejection> closed_by_stack(const Pricing& pricing, const LayoutSpace& space, const Layout& layout);

/// Returns such a rule about the keys that `known` answers alone, so that no other key makes the layout a possible one.
std::optional<Rejection> closed_by_keys(const Pricing& pricing, const LayoutSpace& space, const Layout& layout,
                                        const LayoutRequest& known);

}}  // namespace plumb::planner
