#pragma once
// The slices of each micro-batch are the units of schedules that cut sequences.

#include <string_view>
#include <vector>

#include "schedules/action.h"
#include "schedules/generators/catalogue.h"

namespace plumb { inline namespace schedules {

struct SlicedActions {
  std::vector<Action> forwards;   ///< micro-batches ascend, and slices within each
  std::vector<Action> backwards;  ///< slices descend, since a slice attends to those before it
};

/// Throws ScheduleError, naming the schedule, if there are more slices than an action can number.
void require_numbered_slices(std::string_view schedule, int slices);

/// Returns the slices of the parameters' micro-batches on one stage. Throws as
/// require_numbered_slices does.
SlicedActions each_slice(std::string_view schedule, int stage, const ScheduleParameters& parameters);

}}  // namespace plumb::schedules
