#pragma once
// Divides a rank's list into the steps that it computes one after the other; an overlapped pair is one step.

#include <cstddef>
#include <vector>

#include "schedules/action.h"

namespace plumb { inline namespace schedules {

/// The compute actions [first, first + count) of a list; messages, collectives and moves belong to no step.
struct ComputeStep {
  std::size_t first = 0;  ///< position
  std::size_t count = 1;  ///< 2 for a pair

  std::size_t behind() const { return first + count; }
};

/// Returns the steps of a list, in order.
std::vector<ComputeStep> compute_steps(const std::vector<Action>& actions);

}}  // namespace plumb::schedules
