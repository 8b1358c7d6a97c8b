#pragma once
// What the timed backend replays: a plan's schedule with the durations that the planner gives its operations, or a
// schedule with `--costs`.

#include <optional>
#include <string>

#include "executor/timed/run_timed.h"
#include "simulator/simulate.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

struct TimedInput {
  std::string title;
  TimedSpec spec;        ///< without steps
  Simulation predicted;  ///< of the spec: each transfer on a link of its own
};

/// Throws InputError if neither or both of a plan and a schedule with costs are given, and as plan_input,
/// schedule_input, parse_costs and parse_slow_rank do.
TimedInput timed_input(const ReplayArguments& arguments);

/// Replays by the clock: on threads, or, where mpirun or srun has started this process, as one of its ranks. Then all
/// but the first get nothing. A step that is interrupted is written to `trace` (interrupted_trace); where it `ends`
/// there are fewer steps. Throws as run_timed and run_timed_mpi do.
std::optional<TimedResult> replay_timed(const TimedInput& input, const std::string& trace, const EndQuestion& ends);

}}  // namespace plumb::tools
