#pragma once
// The costs of a model's parts become those of the stages of a placement that joins them.

#include <cstddef>

#include "schedules/search/placements.h"
#include "tools/inputs/costs_option.h"

namespace plumb { inline namespace tools {

/// Returns the costs of the placement's stages, each of which joins as many neighbouring ones of the model's `parts`
/// as the others: sums of times and of bytes held, and the message of its last part. Throws SpecError if a list has
/// neither one entry nor one for each part.
CostsOption joined_costs(CostsOption costs, std::size_t parts, const NamedPlacement& placement);

}}  // namespace plumb::tools
