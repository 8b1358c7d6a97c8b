#pragma once
// Training on the cpu: ranks as threads of this process, or, where mpirun or srun has started several, as processes.

#include <optional>
#include <string>

#include "executor/run.h"

namespace plumb { inline namespace tools {

/// What a run tells of a replay that fails, and of a rank that hangs: the interrupted step goes to `trace` (nowhere
/// where it is empty), of several processes to a file of each, trace.rank2.json; a hang ends this process with the
/// reason.
InterruptionListener interrupted_trace(const std::string& trace);
RankThreadsOptions watched_threads();

/// Nothing on all but the first of several processes. Throws as run() and run_mpi() do.
std::optional<RunResult> run_on_cpu(const RunSpec& spec, RunOptions options, Seconds expected);

}}  // namespace plumb::tools
