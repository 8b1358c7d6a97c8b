#pragma once
// Layouts whose pipeline ranks are meshes of different shape, which a search does not choose by itself. Where the space
// names some, each is evaluated.

#include <optional>

#include "planner/price/pricing.h"
#include "planner/search/search.h"
#include "planner/spec/layout_space.h"

namespace plumb { inline namespace planner {

/// True if the space names meshes.
bool names_meshes(const LayoutSpace& space);

/// Returns the layouts of the meshes that the space names, the best first. Keys that are open have their usual answer:
/// one pipeline, 1f1b, and the smallest micro-batch that all meshes divide. Meshes that are all alike are searched as
/// the degrees that they stand for. Throws SpecError if another key has several values.
SearchResult named_meshes(Pricing& pricing, const LayoutSpace& space, const SearchOptions& options,
                          const std::optional<Schedule>& order);

}}  // namespace plumb::planner
