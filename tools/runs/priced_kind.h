#pragma once
// The planner's name of what an executor's collective does.

#include <optional>

#include "executor/transport/collective.h"
#include "schedules/cost_table.h"

namespace plumb { inline namespace tools {

/// Nothing for those that the planner does not price.
std::optional<CollectiveKind> priced_kind(CollectiveOp op);

}}  // namespace plumb::tools
