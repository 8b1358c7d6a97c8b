#pragma once
// Collectives of the executor are mapped to those of the planner.

#include <optional>

#include "executor/transport/collective.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace tools {

/// Returns the planner's kind of a collective, or nothing if the planner does not price it.
std::optional<CollectiveKind> priced_kind(CollectiveOp op);

}}  // namespace plumb::tools
