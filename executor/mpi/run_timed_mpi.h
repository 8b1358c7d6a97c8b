#pragma once
// A replay by the clock with a process a rank, started by mpirun or srun, over the network that is there.

#include <optional>

#include "executor/timed/run_timed.h"

namespace plumb { inline namespace executor {

/// Called by all ranks. Rank 0 gets the result, the others nothing. Throws RunError or SpecError as run_timed does, and
/// if there are not as many ranks as the schedule needs or they were given different ones; a rank that throws ends the
/// others with stop_mpi_ranks (joined.h). `options.interrupted` is told on each rank what that
/// rank has done; its threads are of no use here.
std::optional<TimedResult> run_timed_mpi(const TimedSpec& spec, const TimedOptions& options = {});

}}  // namespace plumb::executor
