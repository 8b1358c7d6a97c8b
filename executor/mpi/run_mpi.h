#pragma once
// The cpu backend with a process a rank, started by mpirun or srun.

#include <optional>

#include "executor/training/run.h"

namespace plumb { inline namespace executor {

/// Called by all ranks with the same specification; losses are bitwise those of run(). Rank 0 gets the result and makes
/// the checkpoints, the others get nothing. `interrupted` receives on each rank the part of the replay that this rank
/// has done.
///
/// Throws as run() does. Throws SpecError if there are not as many ranks as the specification needs, if they were given
/// different specifications, or if gradients or weights are to be captured, and ScheduleError for EVICT and LOAD, which
/// write to another rank's memory. A rank that throws ends the others with stop_mpi_ranks (joined.h).
std::optional<RunResult> run_mpi(const RunSpec& spec, const RunOptions& options = {});

}}  // namespace plumb::executor
