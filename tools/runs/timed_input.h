#pragma once
// The timed backend replays a plan's schedule with the durations that the planner gives its operations, or a schedule
// with `--costs`.

#include <optional>
#include <string>

#include "executor/timed/run_timed.h"
#include "simulator/simulate.h"
#include "tools/inputs/arguments.h"

namespace plumb { inline namespace tools {

struct TimedInput {
  std::string title;
  TimedSpec spec;        ///< without the number of steps
  Simulation predicted;  ///< simulation of the spec, in which each transfer has a link of its own
};

/// Returns the input that the arguments describe. Throws UsageError unless they give either a plan or a schedule with
/// costs, or if options do not go together, and as plan_input, schedule_input, parse_costs and parse_slow_rank.
TimedInput timed_input(const ReplayArguments& arguments);

/// Replays by the clock: on threads, or as one rank where mpirun or srun has started this process. Of several processes
/// only the first returns a result. A step that is interrupted is written to `trace` (interrupted_trace). If `ends`
/// answers true, there are fewer steps. Throws as run_timed and run_timed_mpi.
std::optional<TimedResult> replay_timed(const TimedInput& input, const std::string& trace, const EndQuestion& ends);

}}  // namespace plumb::tools
