#pragma once
// When the activations of a rank are made, needed and released, counted in the compute steps of its list. The passes
// that move activations choose by this.

#include <cstddef>
#include <vector>

#include "schedules/action.h"
#include "schedules/passes/compute_steps.h"
#include "schedules/schedule.h"

namespace plumb { inline namespace schedules {

/// The life of one activation (of a stage, micro-batch and slice) on its rank.
struct ActivationLife {
  Action forward;
  std::size_t made = 0;       ///< step of its F
  std::size_t needed = 0;     ///< step of its first R, I or B
  std::size_t needed_at = 0;  ///< position of that action, which is unique also within a pair
  std::size_t released = 0;   ///< step of its last B, I or W
};

/// Returns the activations that a backward needs, in the order of their forwards.
std::vector<ActivationLife> activation_lives(const std::vector<Action>& actions, const std::vector<ComputeStep>& steps);

/// Returns the OFFLOAD or RELOAD of an activation.
Action move_of(Op op, const ActivationLife& activation);

/// Throws ScheduleError if the schedule moves activations already.
void require_unmoved(const Schedule& schedule);

}}  // namespace plumb::schedules
