#pragma once
// The critical path is the chain of actions that fixes the makespan. Each starts exactly when the one before it allows;
// time saved on an action that is not on it saves nothing.

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/dependencies/dependencies.h"
#include "schedules/schedule.h"
#include "simulator/engine/engine.h"

namespace plumb { inline namespace simulator {

/// One action on the critical path.
struct CriticalStep {
  int replica = 0;
  int rank = 0;
  std::int64_t position = 0;  ///< position in the rank's list
  Action action;
  SimTime start{0};
  SimTime end{0};
  /// why it waited for the step before it (kIssue for the first step, which starts at 0)
  Reason reason = Reason::kIssue;
};

/// Returns the step's action, or both actions of the overlapped pair that it begins.
inline std::span<const Action> actions_of(const Schedule& schedule, const CriticalStep& step) {
  const Action& first = schedule.ranks[step.rank][step.position];
  return {&first, first.overlaps_next ? 2U : 1U};
}

/// Returns [step of the path] its share of the makespan: the time up to the start of the next step, or its own end. All
/// shares together are the makespan.
std::vector<SimTime> contributions(const std::vector<CriticalStep>& path);

/// Returns the first of the actions that end last, given their ends [replica * actions + action]. A receive is left out:
/// it ends with its send.
std::int32_t last_to_end(const Schedule& schedule, const std::vector<SimTime>& ends);

/// Returns the critical path, first to last. It ends with the first action (by id) of those that end last. Where
/// several constraints allow the same start, the rank's own order is named before inputs, and those before channels.
/// `times` need their causes. A step that frees a channel or issues a receive lets the next one start before its own
/// end (its delivery).
std::vector<CriticalStep> critical_path(const Schedule& schedule, const ActionTimes& times);

}}  // namespace plumb::simulator
