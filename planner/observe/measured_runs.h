#pragma once
// Runs as programs record them: by a training log, or by profiles or pipeline timelines of some ranks.

#include <map>
#include <string>
#include <vector>

#include "planner/logs/profiler_trace.h"
#include "planner/logs/scope_trace.h"
#include "planner/logs/timer_table.h"
#include "planner/logs/training_log.h"
#include "planner/observe/observed_run.h"
#include "planner/search/plan.h"

namespace plumb { inline namespace planner {

/// Returns the run of a log, with the operations that its timers add up. Throws SpecError naming the log if it says that
/// its steps have another size than the plan's.
ObservedRun run_of_log(const TrainingLog& log, const std::map<std::string, PrintedTimer>& timers, const Plan& plan);

/// Returns the run of the profiles of some of its ranks, at least one.
ObservedRun run_of_profiles(const std::vector<ProfilerTrace>& ranks);

/// Returns the run of the pipeline timelines of some of its ranks, at least one.
ObservedRun run_of_scopes(const std::vector<ScopeTrace>& ranks);

}}  // namespace plumb::planner
